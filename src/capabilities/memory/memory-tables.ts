/** Number that identifies the file as a memory of Reeve ("RevM"), in the header of the SQLite file. */
const applicationId = 0x5265764d;

/** Creates the tables of the newest version. */
const tables = `
  CREATE TABLE scopes (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
  CREATE TABLE blocks (
    scope INTEGER NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (scope, name)
  ) WITHOUT ROWID;
  CREATE TABLE episodes (
    row INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    at INTEGER NOT NULL,
    metadata TEXT,
    UNIQUE (scope, id)
  );
  CREATE INDEX episodes_late ON episodes (scope, at DESC, row DESC);
  CREATE VIRTUAL TABLE episode_words USING fts5(scope, text, tokenize = "porter unicode61 remove_diacritics 2");
  CREATE TABLE facts (
    row INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    id TEXT NOT NULL,
    subject TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_until INTEGER,
    recorded_at INTEGER NOT NULL,
    UNIQUE (scope, id)
  );
  CREATE INDEX facts_about ON facts (scope, subject, predicate, valid_from);
  CREATE INDEX facts_late ON facts (scope, valid_from DESC, row DESC);
  CREATE VIRTUAL TABLE fact_words USING fts5(scope, text, tokenize = "porter unicode61 remove_diacritics 2");
  INSERT INTO episode_words (episode_words, rank) VALUES ('secure-delete', 1);
  INSERT INTO fact_words (fact_words, rank) VALUES ('secure-delete', 1);
  `;

/** The tables of a memory file. Version 2 is the version of Reeve 0.1.0. */
export const memorySchema = { applicationId, tables, oldest: 2, migrations: [] } as const;
