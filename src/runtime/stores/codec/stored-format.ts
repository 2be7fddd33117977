/**
 * Number of formats before the first release. Stores refuse what they wrote, because it cannot be migrated. Every change
 * before the release to what a store writes increments it.
 */
export const unreleasedFormats = 12;
