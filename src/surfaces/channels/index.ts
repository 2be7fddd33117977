export type { AllowedSender } from "./access/allow-list.ts";
export type { Owner } from "./access/owner.ts";
export { storedPairings, type Pairing, type Pairings, type PendingPairing } from "./access/pairings.ts";
export type {
  ChannelAdapter,
  ChannelPort,
  Choice,
  ClosedQuestion,
  DecisionReceipt,
  IncomingDecision,
  IncomingMessage,
  MessageOutcome,
  OpenQuestion,
  OutgoingMessage,
  Receipt,
  SendOutcome,
} from "./channel.ts";
export { createChannels, type ChannelEntry, type Channels, type ChannelsOptions } from "./channels.ts";
export type { NotificationCause, NotificationRule, NotificationTarget } from "./notifications/rule.ts";
export { splitText } from "./split-text.ts";
export { telegramChannel, type TelegramOptions } from "./telegram/telegram-channel.ts";
export { webhookChannel, type WebhookOptions } from "./webhook/webhook-channel.ts";
