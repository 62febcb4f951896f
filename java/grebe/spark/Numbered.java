package grebe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Registered files of a relation, each with its id as one more partition value: the lineage of every row, at no cost per row. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Numbered extends Files {
  private final Snapshot registered;
  private final StructType partitions;
  private final PartitionPaths paths;

  Numbered(FileIndex all, Snapshot registered, String column, PartitionPaths paths) {
    super(all);
    this.registered = registered;
    this.paths = paths;
    this.partitions = all.partitionSchema().add(column, DataTypes.IntegerType, false);
  }

  @Override
  List<PartitionDirectory> list(List partitionFilters, List dataFilters) {
    List<PartitionDirectory> numbered = new ArrayList<>();
    StructType own = all.partitionSchema();
    // Whoever lists files answers for the partition filters; the relation's own index cannot, as it does not know the ids.
    List<BasePredicate> wanted = new ArrayList<>();
    partitionFilters.forEach(each -> wanted.add(Predicate$.MODULE$.createInterpreted(bound((Expression) each, partitions))));
    for (Object each : Scala.list(all.listFiles(Scala.nothing(), Scala.seq(dataFilters)))) {
      PartitionDirectory directory = (PartitionDirectory) each;
      for (FileStatusWithMetadata file : files(directory)) {
        boolean same = paths.agree(directory, file.getPath()) && paths.agreeOnTimestamps(directory, file.getPath());
        int id = same ? registered.idOf(file.getPath(), file.getLen(), file.getModificationTime()) : -1;
        InternalRow values = id < 0 ? null : withId(directory.values(), own, id);
        if (values != null && wanted.stream().allMatch(predicate -> predicate.eval(values))) {
          numbered.add(directory(values, Arrays.asList(file)));
        }
      }
    }
    return numbered;
  }

  static Expression bound(Expression expression, StructType partitions) {
    if (expression instanceof AttributeReference) {
      int place = partitions.fieldIndex(((AttributeReference) expression).name());
      return new BoundReference(place, partitions.apply(place).dataType(), true);
    }
    List<Expression> children = new ArrayList<>();
    for (Object child : Scala.list(expression.children())) {
      children.add(bound((Expression) child, partitions));
    }
    return children.isEmpty() ? expression : (Expression) expression.withNewChildren(Scala.seq(children));
  }

  private static InternalRow withId(InternalRow values, StructType schema, int id) {
    Object[] all = new Object[schema.length() + 1];
    for (int i = 0; i < schema.length(); i++) {
      all[i] = values.get(i, schema.apply(i).dataType());
    }
    all[schema.length()] = id;
    return new GenericInternalRow(all);
  }

  @Override
  Object identity() {
    return Arrays.asList(all, registered);
  }

  @Override
  public scala.collection.immutable.Seq rootPaths() {
    return Scala.seq(Scala.list(all.rootPaths()));
  }

  @Override
  public StructType partitionSchema() {
    return partitions;
  }

  @Override
  public String toString() {
    return "Grebe(source of an index)";
  }
}
