import { Fault } from "../../kernel/index.ts";
import type {
  ChannelSettings,
  CodedChannel,
  NotificationSettings,
  Workspace,
} from "../../workspace/workspace.ts";
import type { AllowedSender } from "./access/allow-list.ts";
import type { ChannelAdapter } from "./channel.ts";
import type { ChannelEntry } from "./channels.ts";
import type { NotificationRule, NotificationTarget } from "./notifications/rule.ts";
import { telegramChannel } from "./telegram/telegram-channel.ts";
import { webhookChannel } from "./webhook/webhook-channel.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The channels of the setting `server.channels` and of `reeve.config.ts`. If two channels have the same name, that
 * of `reeve.config.ts` is used. Throws `invalid_argument`, which names the channel, if a setting or an environment
 * variable is missing.
 */
export function configuredChannels(
  { settings, config }: Pick<Workspace, "settings" | "config">,
  env: Environment,
): readonly ChannelEntry[] {
  const channels: Readonly<Record<string, ChannelSettings | CodedChannel>> = {
    ...settings.server?.channels,
    ...config.server?.channels,
  };
  return Object.entries(channels).map(([name, channel]) => ({
    channel: "adapter" in channel ? codedAdapter(name, channel.adapter) : adapterOf(name, channel, env),
    allow: allowed(channel.allow ?? {}),
    ...(channel.agent !== undefined && { agent: channel.agent }),
    ...(channel.pairing !== undefined && { pairing: channel.pairing }),
  }));
}

/** The notifications of the setting `server.notifications` and of `reeve.config.ts`. */
export function configuredNotifications(
  { settings, config }: Pick<Workspace, "settings" | "config">,
  env: Environment,
): readonly NotificationRule[] {
  const rules = { ...settings.server?.notifications, ...config.server?.notifications };
  return Object.entries(rules).map(([name, { on, agents, users, tenants, ...to }]) => ({
    name,
    to: targetOf(name, to, env),
    ...(on !== undefined && { on: on as NonNullable<NotificationRule["on"]> }),
    ...(agents !== undefined && { agents }),
    ...(users !== undefined && { users }),
    ...(tenants !== undefined && { tenants }),
  }));
}

function targetOf(
  name: string,
  { channel, conversation, url, secretEnv, allowPrivate }: NotificationSettings,
  env: Environment,
): NotificationTarget {
  if (channel !== undefined && conversation !== undefined && url === undefined)
    return { channel, conversation };
  if (url === undefined || channel !== undefined)
    throw new Fault(
      "invalid_argument",
      `notification ${name} has no target; set channel and conversation, or url and secretEnv`,
    );
  const secret = secretOf(`notification ${name}`, "secretEnv", secretEnv, env);
  return { url, secret, ...(allowPrivate !== undefined && { allowPrivate }) };
}

function allowed(allow: NonNullable<ChannelSettings["allow"]>): readonly AllowedSender[] {
  return Object.entries(allow).map(([sender, owner]) => ({ ...owner, sender }));
}

function codedAdapter(name: string, adapter: object): ChannelAdapter {
  if (!("send" in adapter) || typeof adapter.send !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid adapter of channel ${name}: expected a ChannelAdapter of reeve/server`,
    );
  if (!("name" in adapter) || adapter.name !== name)
    throw new Fault("invalid_argument", `the adapter of channel ${name} has another name; use the same name`);
  return adapter as ChannelAdapter;
}

function adapterOf(name: string, settings: ChannelSettings, env: Environment): ChannelAdapter {
  const { type, mode, webhookUrl, apiUrl, callbackUrl, allowPrivate } = settings;
  const { tokenEnv = "TELEGRAM_BOT_TOKEN", secretEnv } = settings;
  switch (type) {
    case "telegram":
      return telegramChannel({
        name,
        token: secretOf(`channel ${name}`, "tokenEnv", tokenEnv, env),
        ...(mode === "webhook" && { secretToken: secretOf(`channel ${name}`, "secretEnv", secretEnv, env) }),
        ...(mode !== undefined && { mode }),
        ...(webhookUrl !== undefined && { webhookUrl }),
        ...(apiUrl !== undefined && { apiUrl }),
      });
    case "webhook":
      return webhookChannel({
        name,
        secret: secretOf(`channel ${name}`, "secretEnv", secretEnv, env),
        ...(callbackUrl !== undefined && { callbackUrl }),
        ...(allowPrivate !== undefined && { allowPrivate }),
      });
    default:
      throw new Fault(
        "invalid_argument",
        `channel ${name} has no type; set server.channels.${name}.type to telegram or webhook`,
      );
  }
}

/** Reads a secret from the environment. Settings contain only the name of the variable. */
function secretOf(whose: string, key: string, variable: string | undefined, env: Environment): string {
  if (variable === undefined)
    throw new Fault(
      "invalid_argument",
      `${whose} has no ${key}; set it to the name of the environment variable with the secret`,
    );
  const value = env[variable];
  if (value === undefined || value === "")
    throw new Fault("invalid_argument", `${whose} needs the environment variable ${variable}; set it`);
  return value;
}
