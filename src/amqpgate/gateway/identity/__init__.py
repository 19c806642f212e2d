"""Who clients are, by tokens that the gateway verifies itself (OAuth 2, JWT).

In comes the password of a login, or a new secret; out comes a `VerifiedToken`, or a `TokenError` with a
reason that has nothing of the token in it.

- `tokens`: what a token is and says; no signature is looked at here.
- `keys`: an issuer's public keys (JWK Set), and which of them may have signed a token.
- `verification`: signature, issuer, audience, times, and the principal that comes out.
- `https`: one bounded GET.
- `issuer`: the keys as they are fetched, kept and changed, and the tokens that were verified lately.

`keys` and `verification` import PyJWT, which others need not have installed. Neighbours: `gateway.handshake`
asks at a login, `gateway.session` where a secret is renewed; this room knows `amqpgate.config` and
`amqpgate.policy`.
"""
