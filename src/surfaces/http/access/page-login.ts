import { randomBytes, timingSafeEqual } from "node:crypto";
import { Fault } from "../../../kernel/index.ts";
import { localAccess } from "./access.ts";
import { cookieValue } from "./gate.ts";
import type { Tokens } from "./tokens.ts";

/** How long the cookie of a page is valid. */
const cookieMs = 30 * 24 * 60 * 60 * 1000;

/**
 * Lets the person at this machine open the page: a link that can be used once sets a cookie. The cookie is an
 * ordinary token, so it survives a restart of the server, and can be revoked with `reeve token revoke`.
 */
export class PageLogin {
  readonly #tokens: Tokens;
  readonly #cookie: string;
  #code: Buffer | undefined;

  constructor(tokens: Tokens, cookie: string) {
    this.#tokens = tokens;
    this.#cookie = cookie;
  }

  /** Returns the path of a link that can be used once. Earlier links become invalid. */
  link(): string {
    const code = randomBytes(32);
    this.#code = code;
    return `/login?code=${code.toString("base64url")}`;
  }

  /**
   * Makes the link invalid and returns the `set-cookie` header of the page. Throws `unauthenticated` for any other
   * code.
   */
  async redeem(text: string): Promise<string> {
    const code = Buffer.from(text, "base64url");
    const expected = this.#code;
    if (expected === undefined || code.length !== expected.length || !timingSafeEqual(code, expected))
      throw new Fault(
        "unauthenticated",
        "this link was used before or is unknown; start the server again for a new one",
      );
    this.#code = undefined;
    const { userId } = localAccess;
    const { token } = await this.#tokens.create({
      name: "page",
      scope: "admin",
      expiresAt: Date.now() + cookieMs,
      ...(userId !== null && { userId }),
    });
    return this.#cookieOf(token);
  }

  /**
   * Returns the `set-cookie` header for a token that a person has entered. The cookie contains the token itself, so
   * that revoking the token also ends the access of the browser. Throws `unauthenticated` for an unknown, revoked
   * or expired token.
   */
  async signIn(token: string): Promise<string> {
    if ((await this.#tokens.verify(token)) === undefined)
      throw new Fault("unauthenticated", "the token is unknown, revoked or expired");
    return this.#cookieOf(token);
  }

  /** Whether the browser that sends a request has a valid cookie. */
  async isSignedIn({ headers }: Request): Promise<boolean> {
    const token = cookieValue(headers.get("cookie"), this.#cookie);
    return token !== undefined && (await this.#tokens.verify(token)) !== undefined;
  }

  #cookieOf(token: string): string {
    return `${this.#cookie}=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${cookieMs / 1000}`;
  }
}
