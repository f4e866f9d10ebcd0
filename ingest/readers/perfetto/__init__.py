"""Perfetto's protobuf: traces of its SDK, of Chrome and Android, of stepscope."""
