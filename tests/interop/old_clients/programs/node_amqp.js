// Plays steps with npm's amqp@0.0.2 of 2010: AMQP 0-8, tune-ok with channel-max 0. See ../steps.py for the steps
// and ../clients.py for the conversation.
//
// The library knows a queue or an exchange per channel, and shows little of what it hears: the arguments of
// methods are looked at on their way into it.
'use strict';

const crypto = require('node:crypto');
const readline = require('node:readline');

// What Node.js had in 2010 and has no more.
const sys = require('sys');
sys.puts = sys.error = (text) => console.error(text);
const amqp = require('amqp');

const env = process.env;
const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function ask(what) {
  process.stdout.write(`ask ${what}\n`);
  const { value } = await input.next();
  return JSON.parse(value);
}

/** A connection that is ready, with `heard`: what methods it has been told, by name. */
function connected(changes = {}) {
  const connection = amqp.createConnection({
    host: env.AMQP_HOST,
    port: Number(env.AMQP_PORT),
    login: env.AMQP_USER,
    password: env.AMQP_PASSWORD,
    vhost: env.AMQP_VHOST,
    ...changes,
  });
  connection.heard = {};
  const take = connection._onMethod;
  connection._onMethod = function (channel, method, args) {
    connection.heard[method.name] = args;
    return take.call(this, channel, method, args);
  };
  connection.over = new Promise((resolve) => connection.on('close', () => resolve(closed(connection))));
  connection.on('error', () => {});
  return new Promise((resolve, reject) => {
    // Today's sockets have an event of this name, too, when they are connected.
    connection.on('ready', () => connection.heard.connectionOpenOk && resolve(connection));
    connection.over.then((told) => reject(Object.assign(new Error(JSON.stringify(told)), { told })));
  });
}

function closed({ heard }) {
  const args = heard.connectionClose || heard.channelClose;
  return args ? [args.replyCode, args.replyText, [args.classId, args.methodId]] : 'no word';
}

const opened = (it) => new Promise((resolve, reject) => {
  it.on('error', reject);
  it.on('open', (...counts) => resolve(counts));
});
const done = (promise) => new Promise((resolve) => promise.addCallback(resolve));

/** A queue and its declare-ok: name, messages, consumers. */
async function queue(connection, name, options = {}) {
  const it = connection.queue(name, { autoDelete: false, ...options });
  const counts = await opened(it);
  return [it, [connection.heard.queueDeclareOk.queue, ...counts]];
}

async function exchange(connection, name, options = {}) {
  const it = connection.exchange(name, options);
  await opened(it);
  return it;
}

/** The next `count` messages of a queue: body, and the message with its properties. */
function messages(it, count, options = {}) {
  const seen = [];
  return new Promise((resolve) => {
    it.subscribeRaw({ noAck: true, ...options }, (message) => {
      const pieces = [];
      message.on('data', (data) => pieces.push(Buffer.from(data)));
      message.on('end', () => {
        seen.push([Buffer.concat(pieces).toString(), message]);
        if (options.noAck === false) message.acknowledge();
        if (seen.length === count) resolve(seen);
      });
    });
  });
}

const NAMES = {
  content_type: 'contentType',
  content_encoding: 'contentEncoding',
  delivery_mode: 'deliveryMode',
  correlation_id: 'correlationId',
  reply_to: 'replyTo',
  message_id: 'messageId',
  user_id: 'userId',
  app_id: 'appId',
  cluster_id: 'clusterId',
};

const steps = {
  async server() {
    const { heard } = await connected();
    const { versionMajor, versionMinor, serverProperties, mechanisms } = heard.connectionStart;
    return {
      version: [versionMajor, versionMinor],
      product: String(serverProperties.product),
      mechanisms: String(mechanisms).split(' ').sort(),
      known_hosts: heard.connectionOpenOk.knownHosts,
    };
  },

  async declare() {
    const connection = await connected();
    const [, named] = await queue(connection, 'declare', { durable: true });
    delete connection.queues.declare;
    const [it, passive] = await queue(connection, 'declare', { passive: true });
    const [, own] = await queue(connection, '', { exclusive: true });
    await done(it.destroy());
    return {
      named,
      passive,
      server_named: own[0].startsWith('amq.gen-'),
      deleted: connection.heard.queueDeleteOk.messageCount,
    };
  },

  async bindings() {
    const connection = await connected();
    const queues = {};
    for (const name of ['red', 'blue']) [queues[name]] = await queue(connection, name, { exclusive: true });
    const { red, blue } = queues;
    const to = {};
    for (const type of ['direct', 'fanout', 'topic']) {
      to[type] = await exchange(connection, `x.${type}`, { type, autoDelete: false });
    }
    for (const it of [red, blue]) {
      await done(it.bind(to.direct, it.name));
      await done(it.bind(to.fanout, ''));
    }
    await done(red.bind(to.topic, '*.fast.#'));
    await done(blue.bind(to.topic, 'slow.*'));
    const arrived = Promise.all([messages(red, 4), messages(blue, 2)]);
    to.direct.publish('red', 'direct');
    to.fanout.publish('anything', 'fanout');
    for (const key of ['car.fast.now', 'slow.car', 'car.fast']) to.topic.publish(key, key);
    const [reds, blues] = (await arrived).map((seen) => seen.map(([body]) => body).sort());
    for (const type of Object.keys(to)) await done(to[type].destroy());
    return { red: reds, blue: blues };
  },

  async properties() {
    const connection = await connected();
    const [it] = await queue(connection, 'properties', { exclusive: true });
    const to = await exchange(connection, 'amq.direct');
    await done(it.bind('amq.direct', 'properties'));
    const properties = JSON.parse(env.STEP_PROPERTIES);
    const options = { headers: JSON.parse(env.STEP_HEADERS) };
    for (const [name, value] of Object.entries(properties)) options[NAMES[name] || name] = value;
    to.publish('properties', 'x', options);
    const [[, got]] = await messages(it, 1);
    const seen = { properties: {}, headers: {} };
    for (const name of Object.keys(properties)) seen.properties[name] = got[NAMES[name] || name];
    for (const [name, value] of Object.entries(got.headers)) seen.headers[name] = String(value);
    return seen;
  },

  async bodies() {
    const connection = await connected();
    const [it] = await queue(connection, 'bodies', { exclusive: true });
    const to = await exchange(connection, 'amq.direct');
    await done(it.bind('amq.direct', 'bodies'));
    to.publish('bodies', 'grün '.repeat(20000));
    const [[body]] = await messages(it, 1);
    const bytes = Buffer.from(body);
    return [[bytes.length, crypto.createHash('sha256').update(bytes).digest('hex')]];
  },

  async returns() {
    const connection = await connected();
    const to = await exchange(connection, 'amq.direct');
    const returned = new Promise((resolve) => to.on('basicReturn', resolve));
    to.publish('nowhere', 'lost', { mandatory: true });
    const { replyCode, replyText, exchange: from, routingKey } = await returned;
    return [replyCode, replyText, from, routingKey];
  },

  async consume() {
    const connection = await connected();
    const [it] = await queue(connection, 'consume');
    const to = await exchange(connection, 'amq.direct');
    await done(it.bind('amq.direct', 'consume'));
    for (let n = 0; n < 10; n++) to.publish('consume', `m${n}`);
    const bodies = (await messages(it, 10, { noAck: false })).map(([body]) => body);
    await done(it.destroy());
    return { bodies, left: connection.heard.queueDeleteOk.messageCount };
  },

  async qos() {
    const connection = await connected();
    const [it] = await queue(connection, 'qos');
    const to = await exchange(connection, 'amq.direct');
    await done(it.bind('amq.direct', 'qos'));
    for (let n = 0; n < 3; n++) to.publish('qos', `m${n}`);
    // `ack` is a prefetch of 1; `shift` acknowledges the last message.
    const bodies = [];
    await new Promise((resolve) => {
      it.subscribe({ ack: true }, (message) => {
        bodies.push(message.data.toString());
        it.shift();
        if (bodies.length === 3) resolve();
      });
    });
    await done(it.destroy());
    return { bodies, left: connection.heard.queueDeleteOk.messageCount };
  },

  async errors() {
    const connection = await connected();
    const seen = {};
    const failing = async (it) => {
      await new Promise((resolve) => it.on('error', resolve));
      const { replyCode, replyText, classId, methodId } = connection.heard.channelClose;
      seen[replyCode] = [replyText, [classId, methodId]];
    };
    const [kept] = await queue(connection, 'errors', { durable: true });
    await failing(connection.queue('nothing', { passive: true }));
    delete connection.queues.errors;
    await failing(connection.queue('errors', { durable: false, autoDelete: false }));
    await done(kept.destroy());
    return { ...seen, usable: connection.heard.queueDeleteOk.messageCount === 0 };
  },

  async connection_error() {
    const connection = await connected();
    const [it] = await queue(connection, 'twice', { exclusive: true });
    for (let n = 0; n < 2; n++) it.subscribeRaw(() => {});
    return connection.over;
  },

  unknown_vhost: () => connected({ vhost: 'nowhere' }).then(() => null, (error) => error.told),
  wrong_password: () => connected({ password: 'wrong' }).then(() => null, (error) => error.told),

  async operator_close() {
    const connection = await connected();
    await ask('close');
    return connection.over;
  },
};

async function main(names) {
  for (const name of names) {
    process.stdout.write(`step ${name}\n`);
    try {
      process.stdout.write(`saw ${JSON.stringify(await steps[name]())}\n`);
    } catch (error) {
      process.stdout.write(`failed ${JSON.stringify(error.message)}\n`);
    }
  }
}

main(process.argv.slice(2)).then(() => process.exit(0));
