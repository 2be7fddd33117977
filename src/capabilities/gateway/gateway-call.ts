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
import { refuse, Refusal } from "./refusal.ts";
import { parseObject, readAnswer, type RequestBody } from "./request-body.ts";
import { answerOf, providerOf, UnsentError, type GatewayUpstream, type Upstreams } from "./upstream.ts";
import type { Route, Wire, WireRequest } from "./wire.ts";

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
  readonly #body: RequestBody;
  readonly #signal: AbortSignal;
  readonly #withdrawn = Promise.withResolvers<never>();
  readonly #arrivedAt = performance.now();
  #isSent = false;

  constructor(
    upstreams: Upstreams,
    upstream: GatewayUpstream,
    request: IncomingMessage,
    response: ServerResponse,
    place: Place,
    body: RequestBody,
    signal: AbortSignal,
  ) {
    this.#upstreams = upstreams;
    this.#upstream = upstream;
    this.#request = request;
    this.#response = response;
    this.#place = place;
    this.#body = body;
    this.#signal = signal;
    this.#withdrawn.promise.catch(() => undefined);
    const withdraw = (): void => {
      if (!this.#isSent) this.#withdrawn.reject(reasonOf(signal));
    };
    if (signal.aborted) withdraw();
    signal.addEventListener("abort", withdraw, { once: true });
  }

  /** Rejects if the request is ended before it is sent, for example while it waits for its budget. */
  get withdrawn(): Promise<never> {
    return this.#withdrawn.promise;
  }

  /** How long the gateway has delayed the request, in milliseconds. */
  get delayMs(): number {
    return performance.now() - this.#arrivedAt;
  }

  get provider(): string {
    return providerOf(this.#place.wire.name, this.#upstream);
  }

  get path(): string {
    return this.#place.path;
  }

  /** Whether the provider has an endpoint that counts the tokens of this request. */
  get canCount(): boolean {
    return this.#place.wire.countPath !== undefined;
  }

  /** The status of the answer, or `null` before it has arrived. */
  get status(): number | null {
    return this.#response.headersSent ? this.#response.statusCode : null;
  }

  /** Passes a free request on. */
  async pass(): Promise<void> {
    try {
      const answer = await this.#send(this.#place.path, this.#body.bytes, this.#signal);
      if (this.#refuseRedirect(answer)) return;
      await this.#forward(answer);
    } catch (error) {
      throw this.#signal.aborted ? reasonOf(this.#signal) : error;
    }
  }

  /** B1: asks the provider how many tokens the input has. */
  async count(signal: CancelSignal): Promise<number> {
    const { wire } = this.#place;
    const asked = Buffer.from(this.#body.text.pick(wire.countMembers ?? []));
    const answer = await this.#send(wire.countPath ?? "", asked, signal);
    const { json } = parseObject(await readAnswer(answerOf(answer).content, 1024 * 1024));
    const tokens = answer.statusCode === 200 ? wire.countOf?.(json) : undefined;
    if (tokens === undefined)
      throw new Fault("internal", `the provider did not count the tokens (HTTP ${answer.statusCode})`);
    return tokens;
  }

  /** Sends a request whose cost is reserved. B3: if the answer ends without usage, the call counts as unreported. */
  async perform(asked: WireRequest, granted: MeteredCall, kept: CallRecord): Promise<MeteredResult<null>> {
    try {
      return await this.#perform(asked, granted, kept);
    } catch (error) {
      // The run may have another owner by now, which settles the call. This process still answers the program.
      if (this.#signal.aborted) this.#withdrawn.reject(reasonOf(this.#signal));
      throw error;
    }
  }

  async #perform(asked: WireRequest, granted: MeteredCall, kept: CallRecord): Promise<MeteredResult<null>> {
    // The program has left while the request waited, so that nothing is sent.
    if (this.#signal.aborted) return unbilled;
    this.#isSent = true;
    const problem = thinkingProblem(asked, granted.outputLimit);
    if (problem !== undefined) return this.#refuse(new Refusal(403, problem));
    const signal = AbortSignal.any([this.#signal, granted.signal]);
    let answer: IncomingMessage;
    try {
      answer = await this.#send(this.#place.path, this.#bytesWith(asked, granted.outputLimit), signal);
    } catch (error) {
      if (!(error instanceof UnsentError)) throw error;
      return this.#refuse(new Refusal(502, `the provider could not be reached: ${error.message}`, 1));
    }
    // The provider has the whole request.
    this.#body.drop();
    if (this.#refuseRedirect(answer)) return unbilled;
    const usage = await this.#forward(answer, { granted, kept, asked });
    if ((answer.statusCode ?? 502) >= 400) return unbilled;
    const { reported } = usage;
    if (reported === undefined || !usage.isComplete)
      throw new Fault("internal", `the answer of ${asked.model} ends before its usage is complete`);
    return { value: null, usage: reported };
  }

  /**
   * Returns the bytes for the provider. They are those of the program, except for the members that the gateway
   * changes.
   */
  #bytesWith(asked: WireRequest, limit: number): Buffer {
    const { outputLimit, limitPath, unknownLimit, thinking, added } = asked;
    const isLowered = outputLimit !== limit;
    if (!isLowered && unknownLimit === undefined && added.length === 0) return this.#body.bytes;
    let { text } = this.#body;
    if (unknownLimit !== undefined) text = text.renamed(unknownLimit, limitPath.join(), String(limit));
    else if (isLowered) text = text.with(limitPath, String(limit));
    if (isLowered && thinking !== undefined && thinking.tokens >= limit)
      text = text.with(thinking.path, String(limit - 1));
    for (const { path, value } of added) text = text.with(path, value);
    return Buffer.from(text.text);
  }

  #refuse(refusal: Refusal): MeteredResult<null> {
    refuse(this.#response, this.#place.wire, refusal);
    return unbilled;
  }

  /**
   * Returns whether the answer is a redirect, which is refused because it could send the key and the request to
   * another server.
   */
  #refuseRedirect(answer: IncomingMessage): boolean {
    const { statusCode: status = 502 } = answer;
    if (status < 300 || status >= 400) return false;
    answer.destroy();
    this.#refuse(new Refusal(502, "the provider answered with a redirect, which the gateway refuses"));
    return true;
  }

  #send(path: string, body: Uint8Array, signal: CancelSignal): Promise<IncomingMessage> {
    const { wire, query } = this.#place;
    const { headers } = this.#request;
    return this.#upstreams.send(wire, this.#upstream, path + queryOf(wire, query), headers, body, signal);
  }

  /** Passes the answer on while it arrives. Rejects if the provider or the program ends the connection. */
  async #forward(
    answer: IncomingMessage,
    paid?: { readonly granted: MeteredCall; readonly kept: CallRecord; readonly asked: WireRequest },
  ): Promise<EventStream | WholeAnswer> {
    const { wire } = this.#place;
    const response = this.#response;
    const { headers, content } = answerOf(answer);
    const isEvents = headers["content-type"]?.startsWith("text/event-stream") === true;
    const usage = isEvents ? new EventStream(wire, paid?.asked.hidesUsage === true) : new WholeAnswer(wire);
    response.writeHead(answer.statusCode ?? 502, headers);
    let reported: ReportedUsage | undefined;
    for await (const bytes of content) {
      const passed = usage.push(bytes);
      paid?.kept.add(passed);
      if (passed.length > 0 && !response.write(passed)) await drained(response);
      if (usage.reported === undefined || usage.reported.inputTokens === reported?.inputTokens) continue;
      reported = usage.reported;
      paid?.granted.report(reported);
    }
    const rest = usage.end();
    paid?.kept.add(rest);
    response.end(rest);
    return usage;
  }
}

const unbilled: MeteredResult<null> = { value: null, usage: null };

/** Returns why a request was ended: the access closed, or the program has closed the connection. */
function reasonOf({ reason }: AbortSignal): Refusal {
  return reason instanceof Refusal ? reason : new Refusal(499, "the program has left");
}

/**
 * B1: returns an error text if the thinking budget of a request exceeds its output limit. The gateway refuses such
 * a request, because the provider would refuse it.
 */
function thinkingProblem({ outputLimit, thinking }: WireRequest, limit: number): string | undefined {
  if (thinking === undefined || outputLimit === limit || thinking.least < limit) return undefined;
  return `the request thinks with ${thinking.tokens} tokens, and the output limit of the gateway is ${limit}; turn thinking off, or raise maxOutputTokens of the gateway`;
}

/**
 * Returns the part of a query that is sent to the provider. A key in it is removed, because it is the program's key
 * for the gateway.
 */
function queryOf({ name }: Wire, query: string): string {
  const members = new URLSearchParams(query);
  if (name === "gemini" && members.get("alt") === "sse") return "?alt=sse";
  return name === "anthropic" && members.get("beta") === "true" ? "?beta=true" : "";
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}
