// amqplib: publishes all before it waits for confirms, consumes on two channels at once, gets, and leaves.
'use strict';
const amqp = require('amqplib');

const BODIES = ['', 'small', 'x'.repeat(300000), 'four', 'five'];

async function main() {
  const connection = await amqp.connect(`${process.env.AMQP_URL}?heartbeat=1`);
  connection.on('error', (error) => console.error(String(error)));
  try {
    await talk(connection);
  } catch (error) {
    console.error(String(error));
    process.exitCode = 1;
  }
  await connection.close().catch((error) => console.error(String(error)));
}

async function talk(connection) {
  const publisher = await connection.createConfirmChannel();
  const others = [await connection.createChannel(), await connection.createChannel()];
  const queues = [];
  const returned = [];
  for (const channel of [publisher, ...others]) channel.on('error', (error) => console.error(String(error)));
  publisher.on('return', (message) => returned.push(message.content.toString()));
  for (const channel of others) queues.push((await channel.assertQueue('', { exclusive: true })).queue);
  for (const body of BODIES)
    for (const queue of queues) publisher.sendToQueue(queue, Buffer.from(body), { headers: { n: 1 }, priority: 3 });
  publisher.publish('', 'nowhere', Buffer.from('lost'), { mandatory: true });
  await publisher.waitForConfirms().catch((error) => console.error(String(error)));
  if (returned.join() !== 'lost') throw new Error(`returned: ${returned}`);
  const got = [[], []];
  const tags = await new Promise((resolve, reject) => {
    const consuming = [];
    const take = (number) => (message) => {
      if (message === null) return reject(new Error('cancelled'));
      others[number].ack(message);
      got[number].push(message.content.toString());
      if (got[0].length + got[1].length === 2 * BODIES.length) resolve(Promise.all(consuming));
    };
    for (const number of [0, 1]) consuming.push(others[number].consume(queues[number], take(number)));
  });
  if (JSON.stringify(got) !== JSON.stringify([BODIES, BODIES])) throw new Error('other bodies');
  for (const number of [0, 1]) await others[number].cancel(tags[number].consumerTag);
  if ((await others[0].get(queues[0])) !== false) throw new Error('a message');
  await others[1].close();
}

main().catch((error) => { console.error(String(error)); process.exit(1); });
