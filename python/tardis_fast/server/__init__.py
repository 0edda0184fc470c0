"""The server: what the endpoints of tardis-machine answer, over HTTP and WebSocket.

Everything per message happens in the core; here a chunk of many messages is the smallest thing.
"""
