import { describeValue } from "./describe-value.ts";
import { isFaultCode, retryOf, type FaultCode, type Retry, type SubclassCode } from "./fault-code.ts";
import type { JsonObject, JsonValue } from "./json-value.ts";
import { nearestJson } from "./json-safe-copy.ts";
import { withoutSecrets, withoutSecretsIn } from "./secret-text.ts";

/**
 * The serialised form of a fault, as it is stored in the journal and sent to clients. Secrets are removed from its
 * texts.
 */
export interface Failure {
  readonly code: FaultCode;
  readonly message: string;
  readonly details?: JsonObject;
  readonly cause?: Failure;
}

export interface FaultOptions {
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

const mark: unique symbol = Symbol.for("reeve.fault");
/** Maximum number of causes that are stored. A longer or circular chain is cut. */
export const causesKept = 8;

/**
 * The only error class that Reeve throws. Compare `code`, never `message`. `instanceof` checks a brand, and for
 * subclasses also the code, so it works across duplicate copies of the package and across realms.
 *
 * @example
 * ```ts
 * import { Agent, Fault } from "reeve";
 *
 * async function ask(agent: Agent, question: string): Promise<string> {
 *   try {
 *     return (await agent.invoke(question, { sessionId: "support" })).output;
 *   } catch (error) {
 *     if (Fault.is(error) && error.code === "agent_busy") return "The agent still works on the last question.";
 *     throw error;
 *   }
 * }
 * ```
 */
export class Fault extends Error {
  readonly [mark]: true = true;
  readonly code: FaultCode;
  readonly details: JsonObject | undefined;

  constructor(code: Exclude<FaultCode, SubclassCode>, message: string, options?: FaultOptions);
  /** Used by the subclasses, each of which has a fixed code. */
  constructor(code: FaultCode, message: string, options: FaultOptions, subclass: true);
  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = new.target.name;
    this.code = code;
    this.details = options.details;
  }

  get retry(): Retry {
    return retryOf(this.code);
  }

  /** Whether a value is a `Fault`. Never throws. */
  static is(value: unknown): value is Fault {
    try {
      return (
        typeof value === "object" &&
        value !== null &&
        mark in value &&
        "code" in value &&
        isFaultCode(value.code)
      );
    } catch {
      return false;
    }
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === Fault ? Fault.is(value) : Function.prototype[Symbol.hasInstance].call(this, value);
  }

  /** Converts any thrown value to a fault. A value that is not a fault becomes the cause of an `internal` fault. */
  static from(value: unknown): Fault {
    if (Fault.is(value)) return value;
    return new Fault("internal", messageOf(value), { cause: value });
  }

  toJSON(): Failure {
    return toFailure(this, causesKept);
  }
}

/** Implements `instanceof` for the subclasses: checks the brand and the code. */
export function hasCode(value: unknown, code: SubclassCode): boolean {
  return Fault.is(value) && value.code === code;
}

function toFailure(error: unknown, causesLeft: number): Failure {
  const own = ownFailure(error);
  const cause = read(error, "cause");
  if (cause === undefined || cause === null || causesLeft === 0) return own;
  return { ...own, cause: toFailure(cause, causesLeft - 1) };
}

function ownFailure(error: unknown): Failure {
  if (Fault.is(error)) {
    const { code, details } = error;
    const message = storedMessage(error.message);
    // Details come from arbitrary code. Only JSON can be stored, and without this conversion the run could not be
    // written (J10).
    const stored = details === undefined ? undefined : withoutSecretsIn(nearestJson(details));
    return isObject(stored) ? { code, message, details: stored } : { code, message };
  }
  const name = read(error, "name");
  const details = typeof name === "string" && isError(error) ? { details: { name } } : {};
  return { code: "internal", message: messageOf(error), ...details };
}

/** Length in characters at which a message is cut. Messages come from arbitrary code and are stored several times. */
const longMessage = 65_536;

/** Returns the message as it may be stored: without secrets, and cut if it is very long. */
function storedMessage(message: string): string {
  return withoutSecrets(message.length > longMessage ? `${message.slice(0, longMessage)} [cut]` : message);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function messageOf(value: unknown): string {
  if (!isError(value)) return typeof value === "string" ? storedMessage(value) : describeValue(value);
  const [message, name] = [read(value, "message"), read(value, "name")];
  if (typeof message === "string" && message !== "") return storedMessage(message);
  return typeof name === "string" ? name : "an error without a message";
}

function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** Reads a property of an unknown value; returns `undefined` if the getter throws. */
function read(value: unknown, key: "cause" | "message" | "name"): unknown {
  try {
    return typeof value === "object" && value !== null ? (value as Partial<Error>)[key] : undefined;
  } catch {
    return undefined;
  }
}
