// A program for ioredis' Cluster: what it sees is printed as JSON. node program.js PORT
const { Cluster } = require("ioredis");
const calculateSlot = require("cluster-key-slot");

async function tried(promise) {
  try {
    return await promise;
  } catch (error) {
    return [error.name, error.message.replace(/127\.0\.0\.1:\d+/g, "HOST")];
  }
}

async function move(cluster, key, seen) {
  const slot = calculateSlot(key);
  const nodes = cluster.nodes("master").sort((a, b) => a.options.port - b.options.port);
  const ids = await Promise.all(nodes.map((node) => node.call("CLUSTER", "MYID")));
  const ranges = await nodes[0].call("CLUSTER", "SLOTS");
  const owner = ranges.find(([first, last]) => first <= slot && slot <= last)[2][2];
  const from = nodes[ids.indexOf(owner)];
  const to = ids.find((id) => id !== owner);
  seen.push(await from.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", to));
  for (;;) {
    const [latest] = await from.call("CLUSTER", "GETSLOTMIGRATIONS");
    if (latest[latest.indexOf("state") + 1] === "success") return;
  }
}

async function main(port) {
  const cluster = new Cluster([{ host: "127.0.0.1", port }]);
  const seen = [];
  seen.push(await tried(cluster.flushall()));
  for (let i = 0; i < 30; i++) await cluster.set(`key${i}`, i);
  seen.push(await cluster.get("key7"));
  seen.push(await tried(cluster.mget("a", "b")));
  seen.push(await tried(cluster.mget("{a}1", "{a}2")));
  seen.push(await tried(cluster.pipeline().set("{a}1", 1).incr("{a}1").get("{a}1").exec()));
  seen.push(await tried(cluster.multi().set("{a}2", 1).incr("{a}2").exec()));
  seen.push(await tried(cluster.eval("return redis.call('GET', KEYS[1])", 1, "key3")));
  seen.push(await tried(cluster.eval("return redis.call('GET', KEYS[1])", 2, "key3", "key4")));
  await cluster.rpush("{key3}list", "a", "b");
  const waiting = cluster.duplicate().blpop("{key3}wait", 5);
  await move(cluster, "key3", seen);
  seen.push(await cluster.get("key3"));
  seen.push(await cluster.lrange("{key3}list", 0, -1));
  await cluster.lpush("{key3}wait", "came");
  seen.push(await waiting);
  const subscriber = new Cluster([{ host: "127.0.0.1", port }]);
  const message = new Promise((resolve) => subscriber.on("message", (...words) => resolve(words)));
  await subscriber.subscribe("news");
  await cluster.publish("news", "hello");
  seen.push(await message);
  console.log(JSON.stringify(seen));
  process.exit(0);
}

main(Number(process.argv[2])).catch((error) => {
  console.error(error);
  process.exit(1);
});
