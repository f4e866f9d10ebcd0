"""What files are packed in, whatever they hold: gzip, zstd, msgpack, protobuf."""
