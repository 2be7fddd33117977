import { createHmac, timingSafeEqual } from "node:crypto";
import { Fault } from "../../../kernel/index.ts";

/** Name of the header with time and signature: `t=SECONDS,v1=HEX`. */
export const signatureHeader = "x-reeve-signature";
/** How far the clock of a sender may differ, in milliseconds. */
export const toleranceMs = 300_000;
const minSecretLength = 32;

/** Returns the header of a body: HMAC-SHA-256 of `SECONDS.BODY` with the secret. */
export function sign(secret: string, body: string, now: number): string {
  const seconds = Math.floor(now / 1_000);
  return `t=${seconds},v1=${macOf(secret, seconds, body).toString("hex")}`;
}

/**
 * Checks the header of a body, in a time that does not depend on the signature. Returns the signature, which is unique for
 * secret, time and body. Throws `unauthenticated` if it is wrong, and if the time is too far away.
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
export function checkSecret(channel: string, secret: string): void {
  if (typeof secret !== "string" || secret.length < minSecretLength)
    throw new Fault(
      "invalid_argument",
      `invalid secret of channel ${channel}: expected at least ${minSecretLength} random characters`,
    );
}

function macOf(secret: string, seconds: number, body: string): Buffer {
  return createHmac("sha256", secret).update(`${seconds}.${body}`).digest();
}
