/**
 * Turns a text into a short one that differs when the text differs (SHA-256 in production). Synchronous, and the same
 * in every process and release: digests are stored (J4) and chained (E1).
 */
export type Hash = (text: string) => string;
