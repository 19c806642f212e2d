# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:
#   amqp0-10.qpid-errata.xml
"""AMQP 0-10: the types of values in maps, lists and arrays (section "Types")."""

from __future__ import annotations

from enum import IntEnum


class TypeCode(IntEnum):
    """Upper half of the code: how wide a value is."""

    BIN8 = 0x00
    INT8 = 0x01
    UINT8 = 0x02
    CHAR = 0x04
    BOOLEAN = 0x08
    BIN16 = 0x10
    INT16 = 0x11
    UINT16 = 0x12
    BIN32 = 0x20
    INT32 = 0x21
    UINT32 = 0x22
    FLOAT = 0x23
    CHAR_UTF32 = 0x27
    BIN64 = 0x30
    INT64 = 0x31
    UINT64 = 0x32
    DOUBLE = 0x33
    DATETIME = 0x38
    BIN128 = 0x40
    UUID = 0x48
    BIN256 = 0x50
    BIN512 = 0x60
    BIN1024 = 0x70
    VBIN8 = 0x80
    STR8_LATIN = 0x84
    STR8 = 0x85
    STR8_UTF16 = 0x86
    VBIN16 = 0x90
    STR16_LATIN = 0x94
    STR16 = 0x95
    STR16_UTF16 = 0x96
    VBIN32 = 0xA0
    MAP = 0xA8
    LIST = 0xA9
    ARRAY = 0xAA
    STRUCT32 = 0xAB
    BIN40 = 0xC0
    DEC32 = 0xC8
    BIN72 = 0xD0
    DEC64 = 0xD8
    VOID = 0xF0
    BIT = 0xF1
