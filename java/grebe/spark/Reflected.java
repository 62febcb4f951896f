package grebe.spark;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Members of classes that are not there when this is compiled, or that are nobody's to see: those of lake formats. */
final class Reflected {
  /** Looking a method up takes longer than calling it, and a table may have very many files. */
  private static final ClassValue<Map<String, Method>> FOUND = new ClassValue<Map<String, Method>>() {
    @Override
    protected Map<String, Method> computeValue(Class<?> type) {
      return new ConcurrentHashMap<>();
    }
  };

  private Reflected() {}

  /** What a method of this name gives, wherever in the object's classes it is declared. */
  static Object call(Object object, String name, Object... arguments) {
    try {
      Method method = FOUND.get(object.getClass()).computeIfAbsent(
          name + "/" + arguments.length, unused -> method(object.getClass(), name, arguments.length));
      return method.invoke(object, arguments);
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(object.getClass().getName() + "." + name, problem);
    }
  }

  /** What a static method gives of a class that may not be there when this is compiled. */
  static Object callStatic(String type, String name, Object... arguments) {
    try {
      Class<?> found = Class.forName(type, true, Thread.currentThread().getContextClassLoader());
      Method method = FOUND.get(found).computeIfAbsent(
          name + "/" + arguments.length, unused -> method(found, name, arguments.length));
      return method.invoke(null, arguments);
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(type + "." + name, problem);
    }
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
