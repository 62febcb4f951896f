package grebe.spark;

import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Timestamps in the paths of partitions. Spark understands them by the session's time zone when a frame is made, and the zone may be
 * another one when the frame is used; nothing but the values themselves tells which it was.
 */
final class Moments {
  private final StructType partitions;
  private final List<Integer> places = new ArrayList<>();
  private final ZoneId zone;
  boolean elsewhere;

  Moments(HadoopFsRelation relation) {
    partitions = relation.partitionSchema();
    for (int i = 0; i < partitions.length(); i++) {
      if (partitions.apply(i).dataType().equals(DataTypes.TimestampType)) {
        places.add(i);
      }
    }
    String name = SQLConf.get().sessionLocalTimeZone();
    for (Object each : Scala.list(relation.options())) {
      scala.Tuple2<?, ?> option = (scala.Tuple2<?, ?>) each;
      name = ((String) option._1()).equalsIgnoreCase("timeZone") ? (String) option._2() : name;
    }
    zone = DateTimeUtils.getZoneId(name);
  }

  void look(PartitionDirectory directory, Path file) {
    for (int place : places) {
      String prefix = ExternalCatalogUtils.escapePathName(partitions.apply(place).name()) + "=";
      for (Path at = file.getParent(); at != null && !elsewhere; at = at.getParent()) {
        if (at.getName().regionMatches(true, 0, prefix, 0, prefix.length())) {
          String text = ExternalCatalogUtils.unescapePathName(at.getName().substring(prefix.length()));
          Object now = text.equals(ExternalCatalogUtils.DEFAULT_PARTITION_NAME()) ? null
              : PartitioningUtils.castPartValueToDesiredType(DataTypes.TimestampType, text, zone);
          Object then = directory.values().isNullAt(place) ? null : directory.values().getLong(place);
          elsewhere = now == null ? then != null : !now.equals(then);
          break;
        }
      }
    }
  }
}
