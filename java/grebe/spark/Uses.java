package grebe.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;

/** What a plan uses of its attributes: whole columns, or only fields inside them; and expressions that look at more than rows. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Uses {
  final Set<String> flags = new LinkedHashSet<>();
  private final Map<Long, Set<List<String>>> paths = new HashMap<>();

  void whole(Attribute attribute) {
    paths.computeIfAbsent(attribute.exprId().id(), id -> new LinkedHashSet<>()).add(new ArrayList<>());
  }

  void of(Expression expression) {
    if (expression instanceof AttributeReference) {
      whole((AttributeReference) expression);
    } else if (Expressions.isReference(expression)) {
      List<String> path = new ArrayList<>();
      Expression at = expression;
      while (at instanceof GetStructField) {
        path.add(0, ((GetStructField) at).extractFieldName());
        at = ((GetStructField) at).child();
      }
      paths.computeIfAbsent(((AttributeReference) at).exprId().id(), id -> new LinkedHashSet<>()).add(path);
    } else {
      look(expression);
      for (Object child : Scala.list(expression.children())) {
        of((Expression) child);
      }
    }
  }

  /** Names of files and blocks, and values that depend on which rows share a partition, would change with the files. */
  private void look(Expression expression) {
    String name = expression.getClass().getSimpleName();
    if (name.startsWith("InputFile")) {
      flags.add("input_file");
      if (name.startsWith("InputFileBlock")) {
        flags.add("input_file_block");
      }
    } else if (expression instanceof Nondeterministic) {
      flags.add("nondeterministic");
    }
  }

  /** [id, path…] for each use of the attribute. */
  void write(Json json, Attribute attribute) {
    Set<List<String>> used = paths.get(attribute.exprId().id());
    if (used == null) {
      return;
    }
    for (List<String> path : used) {
      json.list().number(attribute.exprId().id());
      path.forEach(json::text);
      json.endList();
    }
  }
}
