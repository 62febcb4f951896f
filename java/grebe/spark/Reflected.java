package grebe.spark;

import java.lang.reflect.Field;
import java.lang.reflect.Method;

/** Members of classes that are not there when this is compiled, or that are nobody's to see: those of lake formats. */
final class Reflected {
  private Reflected() {}

  /** What a method of this name gives, wherever in the object's classes it is declared. */
  static Object call(Object object, String name, Object... arguments) {
    try {
      return method(object.getClass(), name, arguments.length).invoke(object, arguments);
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(object.getClass().getName() + "." + name, problem);
    }
  }

  static Object field(Object object, String name) {
    for (Class<?> at = object.getClass(); at != null; at = at.getSuperclass()) {
      try {
        Field found = at.getDeclaredField(name);
        found.setAccessible(true);
        return found.get(object);
      } catch (NoSuchFieldException above) {
        continue;
      } catch (IllegalAccessException problem) {
        throw new IllegalStateException(object.getClass().getName() + "." + name, problem);
      }
    }
    throw new IllegalStateException(object.getClass().getName() + " has no field " + name);
  }

  private static Method method(Class<?> type, String name, int arguments) {
    for (Class<?> at = type; at != null; at = at.getSuperclass()) {
      for (Method method : at.getDeclaredMethods()) {
        if (method.getName().equals(name) && method.getParameterCount() == arguments && !method.isBridge()) {
          method.setAccessible(true);
          return method;
        }
      }
    }
    for (Method method : type.getMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == arguments) {
        method.setAccessible(true);
        return method;
      }
    }
    throw new IllegalStateException(type.getName() + " has no method " + name);
  }
}
