import { sharedFields } from "./agent-fields.ts";
import type { Fields, ValuesOf } from "./fields.ts";

const flags = {
  useScreenshot: {
    type: "boolean",
    description: "Whether the model sees a screenshot before each of its turns. Default: false.",
  },
  useAccessibility: {
    type: "boolean",
    description: "Whether the model sees the accessibility tree before each of its turns. Default: false.",
  },
} as const satisfies Fields;

/**
 * Keys of a channel of `reeve serve`. A secret is given as the name of an environment variable, so that no file
 * contains it.
 */
const channelFields = {
  type: { type: "choice", choices: ["telegram", "webhook"], description: "Kind of channel." },
  agent: { type: "text", description: "The agent that answers. Default: the default agent." },
  allow: {
    type: "map",
    description: "Senders that may write without a pairing, by their exact id on the platform.",
    fields: {
      user: { type: "text", description: "User of the sender's runs. Default: CHANNEL:SENDER." },
      tenant: { type: "text", description: "Tenant of the sender's runs. Default: no tenant." },
    },
  },
  pairing: {
    type: "boolean",
    description: "Whether unknown senders receive a code for reeve pair approve. Default: true.",
  },
  tokenEnv: {
    type: "text",
    description: "Telegram: environment variable with the token of the bot. Default: TELEGRAM_BOT_TOKEN.",
  },
  secretEnv: {
    type: "text",
    description:
      "Environment variable with the secret that signs requests; for a Telegram webhook, with its secret token.",
  },
  mode: {
    type: "choice",
    choices: ["poll", "webhook"],
    description: "Telegram: how updates arrive. Default: poll.",
  },
  webhookUrl: {
    type: "text",
    description: "Telegram, webhook: public address of /channels/NAME, which is registered with Telegram.",
  },
  apiUrl: { type: "text", description: "Telegram: address of the Bot API, if it is a server of yours." },
  callbackUrl: {
    type: "text",
    description: "Webhook: address for answers. Default: the response to a message contains its answer.",
  },
  allowPrivate: {
    type: "texts",
    description: "Webhook: private hosts that callbackUrl may lead to, as HOST or HOST:PORT.",
  },
} as const satisfies Fields;

/** Keys of a notification of `reeve serve`. */
const notificationFields = {
  channel: { type: "text", description: "Name of the channel to which the notifications go." },
  conversation: { type: "text", description: "Id of the conversation of the channel." },
  url: { type: "text", description: "Address to which the notifications go, in place of a channel." },
  secretEnv: {
    type: "text",
    description: "Environment variable with the secret that signs notifications to url.",
  },
  allowPrivate: { type: "texts", description: "Private hosts that url may lead to, as HOST or HOST:PORT." },
  on: { type: "texts", description: "What to notify about: waiting, ended. Default: both." },
  agents: { type: "texts", description: "Names of the agents of the runs. Default: all." },
  users: { type: "texts", description: "Users of the runs. Default: all." },
  tenants: { type: "texts", description: "Tenants of the runs. Default: all." },
} as const satisfies Fields;

/**
 * The keys of `settings.json`. The published JSON Schema, the checks and the rules of trust follow from this table.
 */
export const settingsFields = {
  $schema: { type: "text", description: "Address of the JSON Schema, for editors. It has no effect." },
  model: {
    type: "text",
    description: "The model as provider/id, such as anthropic/claude-sonnet-5.",
    trust: "always",
  },
  baseUrl: {
    type: "text",
    description: "Address of the model's provider, if it is not the usual one.",
    trust: "always",
  },
  apiKeyEnv: {
    type: "text",
    description:
      "Name of the environment variable that holds the provider's API key. Default: the provider's own.",
    trust: "always",
  },
  defaultAgent: {
    type: "text",
    description: "The agent that reeve run uses without --agent. Default: assistant.",
    trust: "always",
  },
  tools: {
    type: "choice",
    choices: ["none", "read", "all"],
    description:
      "The tools of an agent that names none: no tools, tools that read files, or all. Default: read.",
    trust: "wider",
    usual: "read",
  },
  sandbox: {
    type: "choice",
    isPolicy: true,
    choices: ["enforce", "warn", "off"],
    description: "The sandbox of shell commands. Default: enforce.",
    trust: "always",
  },
  ...sharedFields,
  unknownPrice: {
    type: "choice",
    choices: ["refuse", "ignore"],
    description:
      "What a model without a known price does in a run with a limit in dollars: its call is refused, or it runs, and its money is unknown. Default: refuse.",
    trust: "wider",
    usual: "refuse",
  },
  permissions: {
    type: "group",
    isPolicy: true,
    description:
      "Which tool calls are allowed, need a person, or are refused. Entries are tool names; * stands for any characters.",
    fields: {
      mode: {
        type: "choice",
        choices: ["default", "acceptEdits", "bypass"],
        description: "What happens to calls without a rule. Default: default.",
        trust: "always",
      },
      allow: { type: "texts", description: "Tools that are allowed without a question.", trust: "always" },
      ask: { type: "texts", description: "Tools that always need a person." },
      deny: { type: "texts", description: "Tools that are refused." },
    },
  },
  appendSystemPrompt: { type: "text", description: "Text that is added to the system prompt." },
  extensions: {
    type: "texts",
    description: "Paths of extensions, relative to the folder of this file.",
    trust: "always",
  },
  packages: {
    type: "texts",
    description: "Packages with extensions and skills: npm:NAME@VERSION, or git:ADDRESS#COMMIT.",
    trust: "always",
  },
  memoryReviewEvery: {
    type: "integer",
    description:
      "Number of tool calls of a session after which a review updates MEMORY.md and USER.md. Default: no reviews.",
    trust: "always",
  },
  browser: {
    type: "group",
    description: "The browser of agents with the tools browser_*.",
    fields: {
      ...flags,
      headless: { type: "boolean", description: "Whether the browser shows no window. Default: true." },
      executablePath: {
        type: "text",
        description: "Path of the browser's program. Default: a Chromium that is found on this machine.",
        trust: "always",
      },
      allowPrivate: {
        type: "texts",
        description: "Private hosts that the browser may open, as HOST or HOST:PORT. Default: none.",
        trust: "always",
      },
    },
  },
  server: {
    type: "group",
    description: "What reeve serve offers.",
    fields: {
      channels: {
        type: "map",
        description: "Channels by name, through which people and programs reach agents.",
        fields: channelFields,
        trust: "always",
      },
      notifications: {
        type: "map",
        description: "Notifications by name, about runs that wait for a person or have ended.",
        fields: notificationFields,
        trust: "always",
      },
    },
  },
  desktop: {
    type: "group",
    description: "The desktop of agents with the tools desktop_*.",
    fields: {
      useScreenshot: { ...flags.useScreenshot, trust: "always" },
      useAccessibility: { ...flags.useAccessibility, trust: "always" },
    },
  },
} as const satisfies Fields;

/** One notification of the setting `server.notifications`. */
export type NotificationSettings = ValuesOf<typeof notificationFields>;

/** One channel of the setting `server.channels`. */
export type ChannelSettings = ValuesOf<typeof channelFields>;

/** The settings of a workspace, after all places have been combined. */
export type Settings = ValuesOf<typeof settingsFields>;
