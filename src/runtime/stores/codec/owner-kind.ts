/**
 * Says to which table a row of `content_owners` refers: to a row of a commit or of session entries that refers to
 * the content, or to the run or session for which an application put it.
 */
export const OwnerKind = Object.freeze({ COMMIT: 0, ENTRIES: 1, RUN: 2, SESSION: 3 });
