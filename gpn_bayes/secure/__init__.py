"""Cryptographic building blocks of federated and private learning; nothing in here opens a connection."""
