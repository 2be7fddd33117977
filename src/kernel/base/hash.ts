/**
 * Turns content into a short text that differs when the content differs (SHA-256 in production). Synchronous, and the
 * same in every process and release: digests are stored (J4) and chained (E1).
 */
export type Hash = (content: string | Uint8Array) => string;
