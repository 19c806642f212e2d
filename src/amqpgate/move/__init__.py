"""Moves of clients from one broker to another: what there is to do, and in which order. Pure.

What brokers and gateways say comes in; what is missing, what would be lost, and the next step go out. Nobody
is asked anything here, and nothing is kept: where a move stands is read off the brokers and the gateways each
time, so that it may be stopped anywhere, and continued, or turned back (decision 0051).

- `document`: the file that describes a move.
- `objects`: queues, exchanges, users and the like, as management interfaces list and take them.
- `rewriting`: what becomes of them on a newer broker.
- `differences`: what the other broker lacks, and what it has otherwise.
- `refusals`: what would be lost, and what to do about it.
- `view`: what is seen at one moment; `steps`: the steps of a move, and which is next.
- `route_file`: a route's cluster in the text of a policy.

Neighbours: `amqpgate.cli` asks brokers and gateways, and does what a step says. This room knows policies, and
what the gateway makes of declares.
"""
