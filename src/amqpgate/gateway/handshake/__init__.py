"""handshake"""
