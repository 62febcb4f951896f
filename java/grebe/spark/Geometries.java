package grebe.spark;

import java.lang.reflect.Method;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Expression;

/** Questions of Apache Sedona about a geometry of each row and a constant one, of which a box can be told. Its classes are met by
 *  name only: most sessions do not have them. */
final class Geometries {
  private static final String PACKAGE = "org.apache.spark.sql.sedona_sql.expressions.";
  private static final String SERIALIZER = "org.apache.sedona.common.geometrySerde.GeometrySerializer";

  private Geometries() {}

  /** ["geometry", function, side, side, distance…]; false, and nothing written, where it is no such question. */
  static boolean write(Json json, Expression expression) {
    String name = nameOf(expression);
    List<Expression> children = Scala.list(expression.children());
    if (name == null || children.size() != arguments(name)) {
      return false;
    }
    double[] left = boxOf(children.get(0));
    double[] right = boxOf(children.get(1));
    if ((left == null) == (right == null)) {
      return false;
    }
    json.list().text("geometry").text(name);
    side(json, children.get(0), left);
    side(json, children.get(1), right);
    for (Expression rest : children.subList(2, children.size())) {
      Expressions.write(json, rest);
    }
    json.endList();
    return true;
  }

  private static String nameOf(Expression expression) {
    String name = expression.getClass().getName();
    return name.startsWith(PACKAGE) ? name.substring(PACKAGE.length()) : null;
  }

  private static int arguments(String name) {
    switch (name) {
      case "ST_Intersects": case "ST_Contains": case "ST_Within": case "ST_Covers": case "ST_CoveredBy":
        return 2;
      case "ST_DWithin":
        return 3;
      default:
        return -1;
    }
  }

  /** ["box", xmin, ymin, xmax, ymax] of a constant, ["point", x, y] or ["wkb", column] of a row, or what it is otherwise. */
  private static void side(Json json, Expression expression, double[] box) {
    String name = nameOf(expression);
    List<Expression> children = Scala.list(expression.children());
    if (box != null) {
      json.list().text("box");
      for (double each : box) {
        json.text(Double.toString(each));
      }
      json.endList();
    } else if ("ST_Point".equals(name) && children.size() == 2) {
      json.list().text("point");
      Expressions.write(json, children.get(0));
      Expressions.write(json, children.get(1));
      json.endList();
    } else if ("ST_GeomFromWKB".equals(name) && children.size() == 1) {
      json.list().text("wkb");
      Expressions.write(json, children.get(0));
      json.endList();
    } else {
      Expressions.write(json, expression);
    }
  }

  /** The envelope of a constant; null for what is none, or has none. */
  private static double[] boxOf(Expression expression) {
    if (!expression.foldable() || !expression.dataType().getClass().getSimpleName().startsWith("GeometryUDT")) {
      return null;
    }
    try {
      Object value = expression.eval(null);
      if (!(value instanceof byte[])) {
        return null;
      }
      ClassLoader loader = expression.dataType().getClass().getClassLoader();
      Method read = Class.forName(SERIALIZER, true, loader).getMethod("deserialize", byte[].class);
      Object geometry = read.invoke(null, value);
      Object box = geometry.getClass().getMethod("getEnvelopeInternal").invoke(geometry);
      if ((Boolean) box.getClass().getMethod("isNull").invoke(box)) {
        return null;
      }
      String[] ends = {"getMinX", "getMinY", "getMaxX", "getMaxY"};
      double[] found = new double[ends.length];
      for (int at = 0; at < ends.length; at++) {
        found[at] = (Double) box.getClass().getMethod(ends[at]).invoke(box);
      }
      return found;
    } catch (ReflectiveOperationException | RuntimeException unknown) {
      // Another Sedona, or a constant that raises: the query itself will tell.
      return null;
    }
  }
}
