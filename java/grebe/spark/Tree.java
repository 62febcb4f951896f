package grebe.spark;

import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;

import scala.Product;

/**
 * An expression as JSON, whole: equal texts mean equal expressions. A column is ["@", relation, name, field…], all else
 * [what it is with all that belongs to it but its children, its type, child…].
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Tree {
  private final Json json;
  private final List<Scanned> relations;

  Tree(Json json, List<Scanned> relations) {
    this.json = json;
    this.relations = relations;
  }

  void write(Expression expression) {
    if (Expressions.isReference(expression)) {
      json.list().text("@");
      reference(expression);
      json.endList();
      return;
    }
    json.list().text(signature(expression)).text(type(expression));
    for (Object child : Scala.list(expression.children())) {
      write((Expression) child);
    }
    json.endList();
  }

  private void reference(Expression expression) {
    if (expression instanceof GetStructField) {
      reference(((GetStructField) expression).child());
      json.text(((GetStructField) expression).extractFieldName());
      return;
    }
    AttributeReference attribute = (AttributeReference) expression;
    json.number(relationOf(attribute)).text(attribute.name());
  }

  private int relationOf(AttributeReference attribute) {
    for (int i = 0; i < relations.size(); i++) {
      for (Object each : Scala.list(relations.get(i).leaf.output())) {
        if (((AttributeReference) each).exprId().equals(attribute.exprId())) {
          return i;
        }
      }
    }
    throw new IllegalStateException("no relation has " + attribute);
  }

  private static String type(Expression expression) {
    return expression.resolved() ? expression.dataType().json() : "";
  }

  private static String signature(Expression expression) {
    StringBuilder text = new StringBuilder(expression.getClass().getSimpleName());
    if (expression instanceof Literal) {
      return text.append('(').append(value((Literal) expression)).append(')').toString();
    }
    text.append('(');
    parts(text, (Product) expression);
    return text.append(')').toString();
  }

  /** Different values of a type have different texts: 'null' is not NULL, and array('a,b') is not array('a', 'b'). */
  private static String value(Literal literal) {
    Object value = literal.value();
    if (value == null) {
      return "null";
    }
    if (value instanceof byte[]) {
      return java.util.Arrays.toString((byte[]) value);
    }
    if (value instanceof ArrayData || value instanceof MapData || value instanceof InternalRow) {
      // Texts of arrays that SQL does tell stay as earlier versions have written them.
      DataType type = literal.dataType();
      return Constants.isLossy(value, type) ? "\\" + Constants.exact(value, type) : literal.sql();
    }
    if (value instanceof UTF8String && !Constants.isText((UTF8String) value)) {
      return bytes((UTF8String) value);
    }
    String said = value.toString();
    return value instanceof UTF8String && (said.startsWith("null") || said.startsWith("\\")) ? "\\" + said : said;
  }

  /** Of a text that is no UTF-8. No other text begins so: those with a backslash in front get another one. */
  private static String bytes(UTF8String value) {
    return "\\x" + Constants.hex(value.getBytes());
  }

  private static void parts(StringBuilder text, Product product) {
    for (int i = 0; i < product.productArity(); i++) {
      own(text, product.productElement(i));
    }
  }

  /** Children come after it; ids differ from query to query. */
  private static void own(StringBuilder text, Object part) {
    if (part instanceof Expression || part instanceof ExprId) {
      text.append(part instanceof Alias ? "alias," : "_,");
    } else if (part instanceof scala.collection.Iterable) {
      text.append('[');
      Scala.list((scala.collection.Iterable) part).forEach(each -> own(text, each));
      text.append("],");
    } else if (part instanceof scala.Option || part instanceof scala.Tuple2) {
      text.append('<');
      parts(text, (Product) part);
      text.append(">,");
    } else if (part instanceof UTF8String && !Constants.isText((UTF8String) part)) {
      text.append(bytes((UTF8String) part)).append(',');
    } else if (part instanceof UTF8String || part instanceof String) {
      // Signs of ours within a text would make two texts look like one, and one like two.
      String said = part.toString().replaceAll("([\\\\,\\[\\]<>])", "\\\\$1");
      text.append(said.equals("null") ? "\\null" : said).append(',');
    } else {
      text.append(part).append(',');
    }
  }
}
