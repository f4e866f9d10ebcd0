"""The front for assistants: tools over traces, by the Model Context Protocol.

The tools know nothing of the protocol: `tools/` takes arguments and gives answers, `answering/`
bounds what these hold, `protocol_server.py` speaks with the official SDK.
"""
