package grebe.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

import scala.Option;

/** Files as Python lists them: places, sizes and times, and values of partition columns, of which the last is the file's id. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Listed extends Files {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final StructType partitions;
  private final List<PartitionDirectory> everything = new ArrayList<>();
  private final String values;
  private final byte[][] listed;

  /**
   * `values`: the different rows of partition values as texts, without the id. `listed` as Arrow has it: ids, sizes, times, offsets
   * and text of the URIs, and for each file the number of its row of values.
   */
  Listed(StructType partitions, String values, byte[][] listed) {
    super(null);
    this.partitions = partitions;
    this.values = values;
    this.listed = listed;
    List<Object[]> rows = rows();
    ByteBuffer ids = order(0), sizes = order(1), times = order(2), ends = order(3), row = order(5);
    for (int i = 0; i < listed[0].length / 4; i++) {
      int start = ends.getInt(4 * i);
      String uri = new String(listed[4], start, ends.getInt(4 * i + 4) - start, StandardCharsets.UTF_8);
      FileStatus file = new FileStatus(sizes.getLong(8 * i), false, 1, 0, times.getLong(8 * i), new Path(uri));
      Object[] known = Arrays.copyOf(rows.get(row.getInt(4 * i)), partitions.length());
      known[partitions.length() - 1] = ids.getInt(4 * i);
      everything.add(PartitionDirectory.apply(new GenericInternalRow(known), new FileStatus[] {file}));
    }
  }

  private ByteBuffer order(int place) {
    return ByteBuffer.wrap(listed[place]).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Texts become values as in a cast of Spark's. */
  private List<Object[]> rows() {
    List<Object[]> rows = new ArrayList<>();
    try {
      for (JsonNode row : JSON.readTree(values)) {
        Object[] made = new Object[row.size()];
        for (int i = 0; i < made.length; i++) {
          Expression text = Literal.create(row.get(i).isNull() ? null : row.get(i).asText(), DataTypes.StringType);
          made[i] = new Cast(text, partitions.apply(i).dataType(), Option.apply("UTC"), EvalMode$.MODULE$.LEGACY()).eval(InternalRow.empty());
        }
        rows.add(made);
      }
    } catch (IOException problem) {
      throw new IllegalArgumentException("values of partitions", problem);
    }
    return rows;
  }

  @Override
  List<PartitionDirectory> list(List partitionFilters, List dataFilters) {
    if (partitionFilters.isEmpty()) {
      return everything;
    }
    List<BasePredicate> wanted = new ArrayList<>();
    partitionFilters.forEach(each -> wanted.add(Predicate$.MODULE$.createInterpreted(Numbered.bound((Expression) each, partitions))));
    List<PartitionDirectory> kept = new ArrayList<>(everything);
    kept.removeIf(directory -> !wanted.stream().allMatch(predicate -> predicate.eval(directory.values())));
    return kept;
  }

  @Override
  Object identity() {
    return Arrays.asList(values, Arrays.deepHashCode(listed), System.identityHashCode(this));
  }

  @Override
  public String[] inputFiles() {
    List<String> names = new ArrayList<>();
    everything.forEach(directory -> files(directory).forEach(file -> names.add(file.getPath().toString())));
    return names.toArray(new String[0]);
  }

  @Override
  public scala.collection.immutable.Seq rootPaths() {
    return Scala.nothing();
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
