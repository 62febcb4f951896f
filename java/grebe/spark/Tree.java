package grebe.spark;

import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;

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
      Object value = ((Literal) expression).value();
      return text.append('(').append(value instanceof byte[] ? java.util.Arrays.toString((byte[]) value) : value).append(')').toString();
    }
    text.append('(');
    parts(text, (Product) expression);
    return text.append(')').toString();
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
    } else {
      text.append(part).append(',');
    }
  }
}
