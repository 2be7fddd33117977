import type { RunId, SessionId } from "../base/identity.ts";

/** A run or a session that owns a content. */
export type ContentOwner = { readonly runId: RunId } | { readonly sessionId: SessionId };

/**
 * Large values, named by a hash of their bytes. A durable store also keeps the large values of commits and session
 * entries this way, in the transaction that writes them: the commit and the entry then refer to the content by its
 * hash. Every store passes `contentContract`, which checks:
 *
 * - V1 `get` returns the bytes that were put, unchanged. The same bytes always have the same hash.
 * - V2 A content has owners, which are runs and sessions, and is deleted with its last owner. `put` and `share` for an
 *   owner that does not exist are refused with `not_found`. A commit or an entry that refers to a content keeps it,
 *   whatever `release` does.
 * - V3 Only owners read a content. Each tenant has its own contents; `share` never crosses tenants.
 * - V4 A value of a commit or an entry is read back unchanged, whatever its size. An entry keeps its values when its
 *   run is deleted, and a fork when its origin is.
 * - V5 Once a task's text is erased, no large value of the task remains in the store, and the chain is valid (E1).
 */
export interface Contents {
  /**
   * Stores the bytes for the owner and returns their hash: SHA-256 in base64url, and with the store's `auditKey` an
   * HMAC. Bytes that the tenant has already are not stored again.
   */
  put(owner: ContentOwner, bytes: Uint8Array): Promise<string>;
  /** Returns the content if this owner has put it or shares it. */
  get(owner: ContentOwner, hash: string): Promise<Uint8Array | undefined>;
  /** Makes `to` another owner of a content of `from`. Rejects with `not_found` if `from` does not own the content. */
  share(hash: string, owners: { readonly from: ContentOwner; readonly to: ContentOwner }): Promise<void>;
  /** Ends the ownership that `put` or `share` created. Does nothing if there is none. */
  release(owner: ContentOwner, hash: string): Promise<void>;
  /** Returns all owners that have put or share this content of `owner`. Empty if `owner` does not own it. */
  owners(owner: ContentOwner, hash: string): Promise<readonly ContentOwner[]>;
}
