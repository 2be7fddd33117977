import type { IncomingMessage, ServerResponse } from "node:http";
import {
  Fault,
  type CancelSignal,
  type MeteredCall,
  type MeteredResult,
  type ReportedUsage,
} from "../../kernel/index.ts";
import { EventStream, WholeAnswer } from "./answer-usage.ts";
import type { CallRecord } from "./call-record.ts";
import type { JsonText } from "./json-text.ts";
import { refuse, Refusal } from "./refusal.ts";
import { readBody, readObject } from "./request-body.ts";
import { headersOf, providerOf, type GatewayUpstream, type Upstreams } from "./upstream.ts";
import type { Json, Route, Wire, WireRequest } from "./wire.ts";

/** The target of a request. */
export interface Place {
  readonly path: string;
  readonly query: string;
  readonly route: Route | undefined;
  readonly wire: Wire;
}

/** One request of a program on its way to the provider and back. */
export class GatewayCall {
  readonly #upstreams: Upstreams;
  readonly #upstream: GatewayUpstream;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #place: Place;
  readonly #signal: AbortSignal;
  readonly #withdrawn = Promise.withResolvers<never>();
  #isSent = false;

  constructor(
    upstreams: Upstreams,
    upstream: GatewayUpstream,
    request: IncomingMessage,
    response: ServerResponse,
    place: Place,
    signal: AbortSignal,
  ) {
    this.#upstreams = upstreams;
    this.#upstream = upstream;
    this.#request = request;
    this.#response = response;
    this.#place = place;
    this.#signal = signal;
    this.#withdrawn.promise.catch(() => undefined);
    const withdraw = (): void => {
      if (!this.#isSent) this.#withdrawn.reject(new Refusal(499, "the program has left"));
    };
    if (signal.aborted) withdraw();
    signal.addEventListener("abort", withdraw, { once: true });
  }

  /** Rejects if the program leaves before the request is sent, for example while it waits for its budget. */
  get withdrawn(): Promise<never> {
    return this.#withdrawn.promise;
  }

  get provider(): string {
    return providerOf(this.#place.wire.name, this.#upstream);
  }

  get path(): string {
    return this.#place.path;
  }

  /** The status of the answer, or `null` before it has arrived. */
  get status(): number | null {
    return this.#response.headersSent ? this.#response.statusCode : null;
  }

  /** Passes a free request on. */
  async pass(body: Buffer): Promise<void> {
    const answer = await this.#send(this.#place.path, body, this.#signal);
    if (this.#refuseRedirect(answer)) return;
    await this.#forward(answer, new WholeAnswer(this.#place.wire));
  }

  /** B1: asks the provider how many tokens the input has. */
  async count(body: Json, signal: CancelSignal): Promise<number> {
    const { wire } = this.#place;
    const asked = Buffer.from(JSON.stringify(wire.countBody?.(body) ?? body));
    const answer = await this.#send(wire.countPath ?? "", asked, signal);
    const { json } = readObject(await readBody(answer, 1024 * 1024));
    const tokens = answer.statusCode === 200 ? wire.countOf?.(json) : undefined;
    if (tokens === undefined)
      throw new Fault("internal", `the provider did not count the tokens (HTTP ${answer.statusCode})`);
    return tokens;
  }

  /** Sends a request whose cost is reserved. B3: an answer that ends without usage is a lost call. */
  async perform(
    asked: WireRequest,
    text: JsonText,
    original: Buffer,
    granted: MeteredCall,
    kept: CallRecord,
  ): Promise<MeteredResult<null>> {
    const { outputLimit } = granted;
    // The program has left while the request waited, so that nothing is sent.
    if (this.#signal.aborted) return unbilled;
    this.#isSent = true;
    const { thinking } = asked;
    const isLowered = asked.outputLimit !== outputLimit;
    const cannotThink = thinking !== undefined && isLowered && thinking.least >= outputLimit;
    if (cannotThink) {
      const problem = `the request thinks with ${thinking.tokens} tokens, and the output limit of the gateway is ${outputLimit}; turn thinking off, or raise maxOutputTokens of the gateway`;
      refuse(this.#response, this.#place.wire, new Refusal(403, problem));
      return unbilled;
    }
    let sent = text;
    if (isLowered) sent = sent.with(asked.limitPath, String(outputLimit));
    if (isLowered && thinking !== undefined && thinking.tokens >= outputLimit)
      sent = sent.with(thinking.path, String(outputLimit - 1));
    for (const { path, value } of asked.added) sent = sent.with(path, value);
    const body = sent === text ? original : Buffer.from(sent.text);
    const signal = AbortSignal.any([this.#signal, granted.signal]);
    const answer = await this.#send(this.#place.path, body, signal);
    const status = answer.statusCode ?? 502;
    const { wire } = this.#place;
    if (this.#refuseRedirect(answer)) return unbilled;
    const isEvents = answer.headers["content-type"]?.startsWith("text/event-stream") === true;
    const usage = isEvents ? new EventStream(wire, asked.added.length > 0) : new WholeAnswer(wire);
    await this.#forward(answer, usage, { granted, kept });
    if (status >= 400) return unbilled;
    const { reported } = usage;
    if (reported === undefined || !usage.isComplete)
      throw new Fault("internal", `the answer of ${asked.model} ends before its usage is complete`);
    return { value: null, usage: reported };
  }

  /** Returns whether the answer is a redirect, which is refused: it could lead the key and the request elsewhere. */
  #refuseRedirect(answer: IncomingMessage): boolean {
    const { statusCode: status = 502 } = answer;
    if (status < 300 || status >= 400) return false;
    answer.destroy();
    const problem = "the provider answered with a redirect, which the gateway refuses";
    refuse(this.#response, this.#place.wire, new Refusal(502, problem));
    return true;
  }

  #send(path: string, body: Uint8Array, signal: CancelSignal): Promise<IncomingMessage> {
    const { wire, query } = this.#place;
    // The query of Gemini says how the answer is sent. A key in it would be that of the program.
    const alt = wire.name === "gemini" && new URLSearchParams(query).get("alt") === "sse" ? "?alt=sse" : "";
    return this.#upstreams.send(wire, this.#upstream, path + alt, this.#request.headers, body, signal);
  }

  /** Passes the answer on while it arrives. Rejects if the provider or the program ends the connection. */
  async #forward(
    answer: IncomingMessage,
    usage: EventStream | WholeAnswer,
    { granted, kept }: { readonly granted?: MeteredCall; readonly kept?: CallRecord } = {},
  ): Promise<void> {
    const response = this.#response;
    response.writeHead(answer.statusCode ?? 502, headersOf(answer));
    let reported: ReportedUsage | undefined;
    for await (const bytes of answer as AsyncIterable<Buffer>) {
      const passed = usage.push(bytes);
      kept?.add(passed);
      if (passed.length > 0 && !response.write(passed)) await drained(response);
      if (usage.reported === undefined || usage.reported.inputTokens === reported?.inputTokens) continue;
      reported = usage.reported;
      granted?.report(reported);
    }
    const rest = usage.end();
    kept?.add(rest);
    response.end(rest);
  }
}

const unbilled: MeteredResult<null> = { value: null, usage: null };

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}
