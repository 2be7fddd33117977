import { createHmac, timingSafeEqual } from "node:crypto";
import { Fault, type JsonValue, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import type { AddressCheckOptions } from "../../../capabilities/web/address-check.ts";
import { jsonBody } from "../../http/request-body.ts";
import {
  choice,
  integer,
  object,
  optional,
  text as textSchema,
  type ValueOf,
} from "../../http/schema/schema.ts";
import { Validator } from "../../http/schema/validator.ts";
import type {
  ChannelAdapter,
  ChannelPort,
  MessageOutcome,
  OutgoingMessage,
  SendOutcome,
} from "../channel.ts";
import { postCallback } from "./callback.ts";

/** Name of the header with time and signature: `t=SECONDS,v1=HEX`. */
const signatureHeader = "x-reeve-signature";
/** Maximum difference of a sender's clock, in milliseconds. */
const toleranceMs = 300_000;
const minSecretLength = 32;

/** Returns the signature header for a body: HMAC-SHA-256 of `SECONDS.BODY` with the secret. */
export function sign(secret: string, body: string, now: number): string {
  const seconds = Math.floor(now / 1_000);
  return `t=${seconds},v1=${macOf(secret, seconds, body).toString("hex")}`;
}

/**
 * Checks the signature header of a body, in a time that does not depend on the signature. Returns the signature,
 * which is unique for secret, time and body. Throws `unauthenticated` if it is wrong, or if the time differs too
 * much.
 */
export function verify(secret: string, header: string | null, body: string, now: number): string {
  const [, time, signature] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/u.exec(header ?? "") ?? [];
  if (time === undefined || signature === undefined)
    throw new Fault(
      "unauthenticated",
      `invalid ${signatureHeader}: expected t=SECONDS,v1=HEX with the HMAC-SHA-256 of SECONDS.BODY`,
    );
  const expected = macOf(secret, Number(time), body);
  if (!timingSafeEqual(expected, Buffer.from(signature, "hex")))
    throw new Fault("unauthenticated", "the signature does not match the body");
  if (Math.abs(Number(time) * 1_000 - now) > toleranceMs)
    throw new Fault("unauthenticated", "the signature is too old, or from the future; check the clock");
  return signature;
}

/** Throws `invalid_argument` for a secret that is too short to be safe. */
function checkSecret(channel: string, secret: string): void {
  if (typeof secret !== "string" || secret.length < minSecretLength)
    throw new Fault(
      "invalid_argument",
      `invalid secret of channel ${channel}: expected at least ${minSecretLength} random characters`,
    );
}

function macOf(secret: string, seconds: number, body: string): Buffer {
  return createHmac("sha256", secret).update(`${seconds}.${body}`).digest();
}

/** Options of `webhookChannel`. */
export interface WebhookOptions extends AddressCheckOptions {
  readonly name: string;
  /** Secret with which both sides sign, at least 32 characters. */
  readonly secret: string;
  /**
   * Address to which answers and questions are sent, signed like the requests. If absent, the response to a message
   * contains its answer.
   */
  readonly callbackUrl?: string;
  /** How long a response waits for an answer, in milliseconds. Default: 25_000. */
  readonly waitMs?: number;
}

const knownOptions = optionTable({
  name: is.text(),
  secret: is.text(),
  callbackUrl: is.text(),
  waitMs: is.number({ from: 0, default: 25_000 }),
  allowPrivate: is.any,
  resolve: is.any,
} satisfies OptionKinds<WebhookOptions>);

const id = textSchema({ minLength: 1, maxLength: 255 });
const body = object({
  type: choice(["message", "decision"]),
  senderId: id,
  conversationId: optional(id),
  messageId: optional(id),
  senderName: optional(textSchema({ maxLength: 255 })),
  text: optional(textSchema({})),
  order: optional(integer({})),
  data: optional(textSchema({ maxLength: 64 })),
});
type Body = ValueOf<typeof body>;

/**
 * A channel for programs: they send signed messages to `/channels/NAME`, and receive the answer in the response or at a
 * callback address. `docs/guides/channels.md` describes the bodies.
 */
export function webhookChannel(options: WebhookOptions): ChannelAdapter {
  const { name, secret, callbackUrl, waitMs } = knownOptions.read("webhookChannel()", options);
  checkSecret(name, secret);
  if (callbackUrl !== undefined) checkUrl(name, callbackUrl);
  const validator = new Validator();
  const send = sender(options);
  return {
    name,
    platform: "webhook",
    send,
    fetch: async (request, port) => {
      const { value: source, claim } = await verified(request, port, secret);
      validator.check(body, source, "body");
      const message = source as Body;
      const answer =
        message.type === "decision"
          ? await decide(message, port, claim)
          : await receive(message, port, { claim, waitMs: callbackUrl === undefined ? waitMs : 0 });
      return Response.json(answer.value, { status: answer.status });
    },
  };
}

interface VerifiedRequest {
  readonly value: JsonValue;
  /**
   * Marks the request as received, and throws if it was received before. Called after its effect is stored, so that
   * a client that repeats a request after a crash is refused only if nothing is lost.
   */
  readonly claim: () => Promise<void>;
}

/** Reads a body after its signature was checked. Throws for a request that was received before. */
async function verified(request: Request, port: ChannelPort, secret: string): Promise<VerifiedRequest> {
  const header = request.headers.get(signatureHeader);
  const source = await request.text();
  const signature = verify(secret, header, source, port.clock.now());
  if (await port.hasSeen(signature)) throw replayed();
  const { url, headers } = request;
  const value = await jsonBody(new Request(url, { method: "POST", headers, body: source }));
  if (value === undefined) throw new Fault("invalid_argument", "the request has no body");
  const claim = async (): Promise<void> => {
    if (!(await port.once(signature, 2 * toleranceMs))) throw replayed();
  };
  return { value, claim };
}

function replayed(): Fault {
  return new Fault(
    "already_exists",
    "this request was received before; to repeat a message, sign it again with the current time",
  );
}

interface Answer {
  readonly status: number;
  readonly value: JsonValue;
}

async function receive(
  message: Body,
  port: ChannelPort,
  { claim, waitMs }: Pick<VerifiedRequest, "claim"> & { readonly waitMs: number },
): Promise<Answer> {
  const { senderId, conversationId = senderId, messageId, text, senderName, order } = message;
  if (messageId === undefined || text === undefined)
    throw new Fault("invalid_argument", "invalid body: a message needs messageId and text");
  const receipt = await port.receive({
    messageId,
    conversationId,
    senderId,
    text,
    ...(senderName !== undefined && { senderName }),
    ...(order !== undefined && { order }),
  });
  await claim();
  if (receipt.kind === "refused")
    throw new Fault("permission_denied", "the sender may not use this channel, or too many messages wait");
  if (receipt.kind === "pairing") return { status: 403, value: { state: "pairing", text: receipt.text } };
  const signal = AbortSignal.timeout(waitMs);
  const outcome =
    waitMs === 0 ? undefined : await port.outcome({ conversationId, messageId, senderId }, signal);
  if (outcome === undefined) return { status: 202, value: { state: "queued" } };
  return { status: outcome.state === "answered" ? 200 : 202, value: valueOf(outcome) };
}

function valueOf({ state, runId, status, texts, questions }: MessageOutcome): JsonValue {
  return {
    state,
    ...(runId !== undefined && { runId }),
    ...(status !== undefined && { status }),
    ...(state === "answered" && { text: texts.join("\n") }),
    ...(questions.length > 0 && { questions: questions as unknown as JsonValue }),
  };
}

const decisionStatus = { accepted: 200, late: 409, refused: 403, unknown: 404 } as const;

async function decide(message: Body, port: ChannelPort, claim: VerifiedRequest["claim"]): Promise<Answer> {
  const { senderId, conversationId = senderId, data } = message;
  if (data === undefined)
    throw new Fault("invalid_argument", "invalid body: a decision needs the data of a choice");
  const { kind, text } = await port.decide({ senderId, conversationId, data });
  await claim();
  return { status: decisionStatus[kind], value: { state: kind, text } };
}

/**
 * Returns the function that sends messages to the callback address. Without such an address, the responses contain
 * the messages, and nothing is sent.
 */
function sender({
  callbackUrl,
  secret,
  ...address
}: WebhookOptions): (message: OutgoingMessage, signal: AbortSignal) => Promise<SendOutcome> {
  if (callbackUrl === undefined) return async () => ({ kind: "sent" });
  return (message, signal) => sendSigned({ ...address, url: callbackUrl, secret }, message, signal);
}

/** A channel that only sends, signed, to one address. */
export function signedSender(name: string, address: SignedAddress): ChannelAdapter {
  checkSecret(name, address.secret);
  checkUrl(name, address.url);
  return {
    name,
    platform: "webhook",
    send: (message, signal) => sendSigned(address, message, signal),
  };
}

function checkUrl(name: string, url: string): void {
  if (!URL.canParse(url) || !/^https?:/u.test(url))
    throw new Fault(
      "invalid_argument",
      `invalid address ${url} of channel ${name}: expected an http or https URL`,
    );
}

interface SignedAddress extends AddressCheckOptions {
  readonly url: string;
  readonly secret: string;
}

/** Posts a message, signed with the current time. `Idempotency-Key` is the same for every repetition. */
async function sendSigned(
  { url, secret, allowPrivate, resolve }: SignedAddress,
  message: OutgoingMessage,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const source = JSON.stringify(message);
  let answer;
  try {
    answer = await postCallback({
      url,
      body: source,
      signal,
      headers: { [signatureHeader]: sign(secret, source, Date.now()), "idempotency-key": message.deliveryId },
      ...(allowPrivate !== undefined && { allowPrivate }),
      ...(resolve !== undefined && { resolve }),
    });
  } catch (error) {
    const fault = Fault.from(error);
    if (fault.code === "permission_denied") return { kind: "failed", reason: fault.message };
    return { kind: "retry", reason: fault.message };
  }
  const { status, retryAfterMs } = answer;
  if (status >= 200 && status < 300) return { kind: "sent" };
  const reason = `the callback address answered ${status}`;
  if (status < 500 && status !== 408 && status !== 409 && status !== 425 && status !== 429)
    return { kind: "failed", reason };
  return { kind: "retry", reason, ...(retryAfterMs !== undefined && { afterMs: retryAfterMs }) };
}
