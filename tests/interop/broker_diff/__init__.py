"""The embedded broker against RabbitMQ: the same scenarios, compared frame by frame.

`steps`       what a scenario is made of: data
`scenarios/`  the scenarios
`line`        one client connection on a raw socket
`player`      plays a scenario against one broker
`transcript`  what came back, with what must differ made equal
`embedded`    the embedded broker in a thread
"""
