"""amqp"""
