package grebe.spark;

import java.time.ZoneId;
import java.util.Arrays;
import java.util.Objects;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Compares the values of a partition with those that the path of its files spells, which are the ones that indexes know. A catalog may say
 * otherwise: it keeps the folder of a partition that was renamed, and a partition may have any location. Timestamps are understood by the
 * session's time zone when a frame is made, and the zone may be another one when the frame is used.
 */
final class PartitionPaths {
  private static final Compared NO_PARTITIONS = new Compared(InternalRow.empty(), null, true, true);
  private final StructType partitions;
  private final ZoneId zone;
  private Compared last;

  /** One path, compared with one row of values: all files of a directory have the same. */
  private static final class Compared {
    final InternalRow values;
    final Path folder;
    /** Values agree, timestamps aside. */
    final boolean same;
    final boolean sameTimestamps;

    Compared(InternalRow values, Path folder, boolean same, boolean sameTimestamps) {
      this.values = values;
      this.folder = folder;
      this.same = same;
      this.sameTimestamps = sameTimestamps;
    }
  }

  private PartitionPaths(StructType partitions, String zone) {
    this.partitions = partitions;
    this.zone = DateTimeUtils.getZoneId(zone);
  }

  /** As the session of this thread understands timestamps. */
  static PartitionPaths of(HadoopFsRelation relation) {
    return of(relation, SQLConf.get().sessionLocalTimeZone());
  }

  static PartitionPaths of(HadoopFsRelation relation, String sessionZone) {
    String name = sessionZone;
    for (Object each : Scala.list(relation.options())) {
      scala.Tuple2<?, ?> option = (scala.Tuple2<?, ?>) each;
      name = ((String) option._1()).equalsIgnoreCase("timeZone") ? (String) option._2() : name;
    }
    return new PartitionPaths(relation.partitionSchema(), name);
  }

  /** Return whether the path spells all values other than timestamps as they are, and names every partition column. */
  boolean agree(PartitionDirectory directory, Path file) {
    return compared(directory, file).same;
  }

  /** Return whether the path spells the timestamps among the values as they are. */
  boolean agreeOnTimestamps(PartitionDirectory directory, Path file) {
    return compared(directory, file).sameTimestamps;
  }

  /** Return what tells the values of a partition from those that its path spells; empty if these are the same. */
  String displacement(PartitionDirectory directory, Path file) {
    if (agree(directory, file) && agreeOnTimestamps(directory, file)) {
      return "";
    }
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < partitions.length(); i++) {
      Object value = directory.values().isNullAt(i) ? null : directory.values().get(i, partitions.apply(i).dataType());
      text.append('\n').append(value instanceof byte[] ? Arrays.toString((byte[]) value) : String.valueOf(value));
    }
    return text.toString();
  }

  private synchronized Compared compared(PartitionDirectory directory, Path file) {
    if (partitions.isEmpty()) {
      return NO_PARTITIONS;
    }
    Path folder = file.getParent();
    if (last == null || last.values != directory.values() || !Objects.equals(last.folder, folder)) {
      last = compare(directory.values(), folder);
    }
    return last;
  }

  private Compared compare(InternalRow values, Path folder) {
    boolean same = true;
    boolean sameTimestamps = true;
    for (int i = 0; i < partitions.length(); i++) {
      DataType type = partitions.apply(i).dataType();
      String text = spelled(folder, partitions.apply(i).name());
      if (text == null) {
        same = false;
      } else if (type.equals(DataTypes.TimestampType)) {
        sameTimestamps &= isValue(values, i, type, text);
      } else {
        same &= isValue(values, i, type, text);
      }
    }
    return new Compared(values, folder, same, sameTimestamps);
  }

  /** Return the text of a partition column in a path, still escaped; null if the path does not name the column. */
  private static String spelled(Path folder, String column) {
    for (Path at = folder; at != null; at = at.getParent()) {
      int sign = at.getName().indexOf('=');
      if (sign > 0 && ExternalCatalogUtils.unescapePathName(at.getName().substring(0, sign)).equalsIgnoreCase(column)) {
        return at.getName().substring(sign + 1);
      }
    }
    return null;
  }

  private boolean isValue(InternalRow values, int place, DataType type, String text) {
    try {
      Object value = values.isNullAt(place) ? null : values.get(place, type);
      Object path = text.equals(ExternalCatalogUtils.DEFAULT_PARTITION_NAME()) ? null
          : PartitioningUtils.castPartValueToDesiredType(type, text, zone);
      return Objects.deepEquals(path, value);
    } catch (RuntimeException none) {
      return false; // a text that is no value of the type
    }
  }
}
