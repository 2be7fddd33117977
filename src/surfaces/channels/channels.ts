import { Fault, type Runtime, type Store, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { limitedRequest } from "../http/request-body.ts";
import { route, type Route } from "../http/route.ts";
import { anyObject } from "../http/schema/schema.ts";
import { ServedAgents, type AgentList } from "../http/served-agents.ts";
import { allowList, type AllowedSender } from "./access/allow-list.ts";
import { storedPairings } from "./access/pairings.ts";
import { Senders } from "./access/senders.ts";
import { ChannelHost } from "./channel-host.ts";
import type { ChannelAdapter } from "./channel.ts";
import { Notifier, type RuleTarget } from "./notifications/notifier.ts";
import { checkRule, ruleTable, type NotificationRule } from "./notifications/rule.ts";
import { signedSender } from "./webhook/webhook-channel.ts";

/** A channel, and who may use it to reach which agent. */
export interface ChannelEntry {
  readonly channel: ChannelAdapter;
  /** Name of the agent that answers. Default: the first agent. */
  readonly agent?: string;
  /** Senders that may write without a pairing. Compared exactly. Default: none. */
  readonly allow?: readonly AllowedSender[];
  /** Whether unknown senders receive a code, with which the owner of the store can admit them. Default: `true`. */
  readonly pairing?: boolean;
}

/** Options of `createChannels`. */
export interface ChannelsOptions {
  /** The store of the runtime. Messages, answers and pairings are kept in its records. */
  readonly store: Pick<Store, "records" | "mailbox" | "onChange">;
  /** The agents that channels may name, as for `createServer`. An agent is registered with the runtime; a `ServedAgent` is not. */
  readonly agents: AgentList;
  readonly channels: readonly ChannelEntry[];
  /** Notifications about runs that wait for a person or have ended. Default: none. */
  readonly notifications?: readonly NotificationRule[];
  /** Receives one line for each event that a person may need to know. Default: a process warning. */
  readonly log?: (line: string) => void;
}

/** Channels that work until they are closed. */
export interface Channels {
  /** The routes of channels with a fetch handler, for `createServer(runtime, { routes })`. */
  readonly routes: readonly Route[];
  /** The names of the channels. */
  readonly names: readonly string[];
  /** Starts polling, processing stored messages and sending. */
  start(): void;
  /** Stops all channels and resolves when nothing is in progress. Close them before the runtime. */
  close(): Promise<void>;
}

/**
 * Option table of a channel. Unknown options throw, because a misspelt one would let senders pair, or give their
 * runs no tenant.
 */
const entryTable = optionTable({
  channel: is.withMethods(["send"], "use telegramChannel(), webhookChannel() or a channel of your own"),
  agent: is.text(),
  allow: is.list(),
  pairing: is.boolean(),
} satisfies OptionKinds<ChannelEntry>);

const knownOptions = optionTable({
  store: is.any,
  agents: is.any,
  channels: is.list({
    of: is.checkedBy((entry, _option, owner) => entryTable.read(`a channel of ${owner}`, entry)),
  }),
  notifications: is.list({
    of: is.checkedBy((rule, _option, owner) => ruleTable.read(`a notification of ${owner}`, rule)),
  }),
  log: is.callback(),
} satisfies OptionKinds<ChannelsOptions>);

/** Largest body of a request to a channel, in bytes. */
const maxBodyBytes = 262_144;

/**
 * Lets people reach agents through channels, such as `telegramChannel()` and `webhookChannel()`.
 *
 * @example
 * ```ts
 * import { Agent, openRuntime, openStore } from "reeve";
 * import { createChannels, createServer, webhookChannel } from "reeve/server";
 * import { scriptedModel } from "reeve/testing";
 *
 * const store = await openStore("memory:");
 * const runtime = await openRuntime({ store });
 * const agents = [new Agent({ name: "clerk", model: scriptedModel(["Done."]) })];
 * const channel = webhookChannel({ name: "shop", secret: "0123456789abcdef0123456789abcdef" });
 * const channels = createChannels(runtime, { store, agents, channels: [{ channel, allow: ["till-1"] }] });
 * const server = createServer(runtime, { agents, tokens: null, routes: channels.routes });
 * channels.start();
 *
 * await channels.close();
 * await server.drain();
 * await runtime.close();
 * ```
 */
export function createChannels(runtime: Runtime, options: ChannelsOptions): Channels {
  const {
    store,
    agents,
    channels,
    notifications = [],
    log = warn,
  } = knownOptions.read("createChannels()", options);
  const served = new ServedAgents(agents);
  ServedAgents.register(agents, runtime);
  const hosts = new Map<string, ChannelHost>();
  const hostOf: MakeHost = (entry, agent) =>
    new ChannelHost({
      channel: entry.channel,
      agent,
      agents: served,
      runtime,
      store,
      records: store.records,
      senders: sendersOf(entry, { runtime, store, log }),
      clock: runtime.clock,
      log,
    });
  const routes: Route[] = [];
  for (const entry of channels) {
    const { channel } = entry;
    checkName(channel.name);
    if (hosts.has(channel.name))
      throw new Fault("already_exists", `two channels have the name ${channel.name}; rename one of them`);
    const host = hostOf(entry, agentOf(entry, served));
    hosts.set(channel.name, host);
    if (channel.fetch !== undefined) routes.push(routeOf(channel, host));
  }
  const names = [...hosts.keys()];
  const targets = notifications.map((rule) => targetOf(rule, hosts, hostOf));
  const notifier = new Notifier({ runtime, store, targets, log });
  let leave: (() => void) | undefined;
  return {
    routes,
    names,
    start: () => {
      leave ??= runtime.attend();
      for (const host of hosts.values()) host.start();
      notifier.start();
    },
    close: async () => {
      leave?.();
      await notifier.close();
      await Promise.all([...hosts.values()].map((host) => host.close()));
    },
  };
}

type MakeHost = (entry: ChannelEntry, agent: string) => ChannelHost;

/** Finds the channel of a rule, or adds a host that only sends to its address. */
function targetOf(rule: NotificationRule, hosts: Map<string, ChannelHost>, make: MakeHost): RuleTarget {
  checkRule(rule);
  const { name, to } = rule;
  if ("channel" in to) {
    const found = hosts.get(to.channel);
    if (found === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid channel ${JSON.stringify(to.channel)} of notification ${name}: it does not exist`,
      );
    return { rule, conversationId: to.conversation, post: (message) => found.post(message) };
  }
  const channel = signedSender(`notify-${name}`, to);
  if (hosts.has(channel.name))
    throw new Fault("already_exists", `two notifications have the name ${name}; rename one of them`);
  const host = make({ channel, pairing: false }, "");
  hosts.set(channel.name, host);
  return { rule, conversationId: name, post: (message) => host.post(message) };
}

function sendersOf(
  { channel, allow = [], pairing = true }: ChannelEntry,
  {
    runtime: { clock },
    store,
    log,
  }: { readonly runtime: Runtime } & Pick<ChannelsOptions, "store"> & {
      readonly log: (line: string) => void;
    },
): Senders {
  const now = (): number => clock.now();
  return new Senders({
    channel: channel.name,
    allowed: allowList(channel.name, allow, (senderId) => channel.senderProblem?.(senderId)),
    canPair: pairing,
    pairings: storedPairings(store.records, now),
    log,
    now,
  });
}

function agentOf({ agent, channel }: ChannelEntry, agents: ServedAgents): string {
  if (agent !== undefined) return agents.find(agent).name;
  const [first] = agents.list;
  if (first === undefined)
    throw new Fault("invalid_argument", `channel ${channel.name} has no agent: host one, and name it`);
  return first.name;
}

const answered = { status: 200, description: "What the channel answers.", schema: anyObject() };

/** The route of a channel. The channel authenticates its requests itself, so the route needs no token. */
function routeOf(channel: ChannelAdapter, host: ChannelHost): Route {
  return route({
    id: `channels.${channel.name}`,
    method: "POST",
    path: `/channels/${channel.name}`,
    summary: `Receive messages of the channel ${channel.name}. The channel authenticates its requests itself.`,
    scope: null,
    authenticates: true,
    responses: [answered],
    handle: async ({ request, server }) => {
      server.refuseIfDraining();
      const limited = limitedRequest(request, { maxBytes: maxBodyBytes });
      if (channel.fetch === undefined)
        throw new Fault("unsupported", `channel ${channel.name} receives no requests`);
      return channel.fetch(limited, host);
    },
  });
}

function checkName(name: string): void {
  if (!/^[a-z][a-z0-9-]{0,31}$/u.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid name ${JSON.stringify(name)} of a channel: expected 1 to 32 lower-case letters, digits and -, starting with a letter`,
    );
}

function warn(line: string): void {
  process.emitWarning(line, { type: "ReeveWarning" });
}
