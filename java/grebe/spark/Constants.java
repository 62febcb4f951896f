package grebe.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Constants that are more than their SQL says: texts that are no UTF-8, which become U+FFFD, and timestamps, which SQL shows as the
 * local time of the session without naming its zone.
 */
final class Constants {
  private Constants() {}

  /** Whether the SQL of a constant may be that of another one too, or of another one in another session. */
  static boolean isLossy(Object value, DataType type) {
    if (value instanceof UTF8String) {
      return !isText((UTF8String) value);
    }
    if (value instanceof ArrayData || value instanceof MapData || value instanceof InternalRow) {
      DataType[] types = types(value, type);
      return types == null || anyLossy(parts(value, types), types);
    }
    return value != null && type.equals(DataTypes.TimestampType);
  }

  static boolean isText(UTF8String value) {
    byte[] bytes = value.getBytes();
    return Arrays.equals(new String(bytes, StandardCharsets.UTF_8).getBytes(StandardCharsets.UTF_8), bytes);
  }

  static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte each : bytes) {
      text.append(String.format("%02x", each));
    }
    return text.toString();
  }

  /** Different values of a type have different texts, in every session. */
  static String exact(Object value, DataType type) {
    if (value == null) {
      return "null";
    }
    if (value instanceof UTF8String) {
      return hex(((UTF8String) value).getBytes());
    }
    if (value instanceof byte[]) {
      return hex((byte[]) value);
    }
    DataType[] types = types(value, type);
    if (types == null) {
      return value.toString();
    }
    StringBuilder text = new StringBuilder("(");
    Object[] parts = parts(value, types);
    for (int i = 0; i < parts.length; i++) {
      text.append(exact(parts[i], types[i % types.length])).append(',');
    }
    return text.append(')').toString();
  }

  private static boolean anyLossy(Object[] parts, DataType[] types) {
    for (int i = 0; i < parts.length; i++) {
      if (isLossy(parts[i], types[i % types.length])) {
        return true;
      }
    }
    return false;
  }

  /** Of the parts of a value, over and over; null if it has none that are known. */
  private static DataType[] types(Object value, DataType type) {
    if (value instanceof ArrayData && type instanceof ArrayType) {
      return new DataType[] {((ArrayType) type).elementType()};
    }
    if (value instanceof MapData && type instanceof MapType) {
      return new DataType[] {((MapType) type).keyType(), ((MapType) type).valueType()};
    }
    if (value instanceof InternalRow && type instanceof StructType) {
      return Arrays.stream(((StructType) type).fields()).map(StructField::dataType).toArray(DataType[]::new);
    }
    return null;
  }

  private static Object[] parts(Object value, DataType[] types) {
    if (value instanceof ArrayData) {
      return objects((ArrayData) value, types[0]);
    }
    if (value instanceof MapData) {
      Object[] keys = objects(((MapData) value).keyArray(), types[0]);
      Object[] values = objects(((MapData) value).valueArray(), types[1]);
      Object[] both = new Object[keys.length * 2];
      for (int i = 0; i < keys.length; i++) {
        both[2 * i] = keys[i];
        both[2 * i + 1] = values[i];
      }
      return both;
    }
    InternalRow row = (InternalRow) value;
    Object[] fields = new Object[types.length];
    for (int i = 0; i < types.length; i++) {
      fields[i] = row.isNullAt(i) ? null : row.get(i, types[i]);
    }
    return fields;
  }

  private static Object[] objects(ArrayData array, DataType type) {
    Object[] items = new Object[array.numElements()];
    for (int i = 0; i < items.length; i++) {
      items[i] = array.isNullAt(i) ? null : array.get(i, type);
    }
    return items;
  }
}
