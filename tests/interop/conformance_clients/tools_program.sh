# librabbitmq's tools: publish, consume, get, each with a connection of its own.
set -e
queue="tools-$$"
amqp-declare-queue -u "$AMQP_URL" -q "$queue" > /dev/null
for body in small four five; do amqp-publish -u "$AMQP_URL" -r "$queue" -b "$body" -H "n: 1"; done
head -c 300000 /dev/zero | amqp-publish -u "$AMQP_URL" -r "$queue"
printf '' | amqp-publish -u "$AMQP_URL" -r "$queue"
amqp-consume -u "$AMQP_URL" -q "$queue" -c 2 cat > "/tmp/$queue"
[ "$(cat "/tmp/$queue")" = smallfour ]
rm "/tmp/$queue"
[ "$(amqp-get -u "$AMQP_URL" -q "$queue")" = five ]
[ "$(amqp-get -u "$AMQP_URL" -q "$queue" | wc -c)" = 300000 ]
[ "$(amqp-get -u "$AMQP_URL" -q "$queue" | wc -c)" = 0 ]
amqp-delete-queue -u "$AMQP_URL" -q "$queue" > /dev/null
