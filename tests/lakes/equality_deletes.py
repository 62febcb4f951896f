"""Deletes by value, which streaming writers leave in Iceberg tables and Spark never writes: through Iceberg's own Java library."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete_by_value(spark: "SparkSession", table: str, column: str, value: int) -> None:
    """`table` is a name of the catalog; the column is of type BIGINT, and the value too large for an INT, which it would become on
    its way to Java."""
    assert value >= 2**31
    jvm = spark._jvm
    assert jvm is not None
    iceberg = jvm.org.apache.iceberg
    loaded = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    schema = loaded.schema().select(jvm.java.util.Collections.singletonList(column))
    field = loaded.schema().findField(column).fieldId()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    ids = gateway.new_array(gateway.jvm.int, 1)
    ids[0] = field
    builder = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(loaded)
    builder = builder.deleteFileFormat(iceberg.FileFormat.PARQUET).equalityFieldIds(ids).equalityDeleteRowSchema(schema)
    files = iceberg.io.OutputFileFactory.builderFor(loaded, 1, 1).format(iceberg.FileFormat.PARQUET).build()
    writer = builder.build().newEqualityDeleteWriter(files.newOutputFile(), loaded.spec(), None)
    record = iceberg.data.GenericRecord.create(schema)
    record.setField(column, value)
    writer.write(record)
    writer.close()
    loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    spark.sql(f"REFRESH TABLE {table}")
