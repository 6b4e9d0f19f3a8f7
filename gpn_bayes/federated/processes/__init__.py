"""A federated run between processes: coordinator and clients over gRPC and TLS, with what each keeps on disk."""
