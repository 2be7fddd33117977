/**
 * Computes a digest of the content (SHA-256 in production). It is synchronous and returns the same text in every
 * process and release, because digests are stored (J4) and chained (E1).
 */
export type Hash = (content: string | Uint8Array) => string;
