/**
 * The default store of a folder. This is a separate module, because the help of commands shows the address and must
 * not load the store.
 */
export const defaultStore = "sqlite:.reeve/reeve.db";
