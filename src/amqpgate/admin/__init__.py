"""The window to operators: probes, metrics and live state over HTTP, on loopback unless a token guards it.

In come HTTP requests; out go the answers about the gateway, or the workers of one, that is handed in
(`subject`). Each subject has a file with its paths (`paths`), which says what the OpenAPI document tells of
them, too (`openapi`); `http` puts them together, `https` has the certificate, and `guarding` decides who may
ask and who may change something.

Neighbours: ``app`` runs it, and has its HTTPS for the webhook from here; it asks ``operator`` by the
table of queries there.
"""
