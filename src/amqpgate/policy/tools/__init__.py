"""Policies looked at without serving, for ``amqpgate policy``.

Policy sets, documents and RabbitMQ's definitions come in; reports for people go out.

- `checks`, `selection`: what in a folder cannot be meant so.
- `explain`, `explained`: which rule decides, and why each other one does not; that as JSON.
- `diff`: what two sets answer differently, by example.
- `policy_tests`: runs what a folder is expected to answer.
- `definitions`, `rabbitmq_import`: RabbitMQ's permissions to access policies.
- `writing`: values as documents have them.
"""
