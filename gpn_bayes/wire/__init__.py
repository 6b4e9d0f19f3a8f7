"""How parties reach each other: certificates, TLS, messages of a fixed schema; no cryptographic protocol in here."""
