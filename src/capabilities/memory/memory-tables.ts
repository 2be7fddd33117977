/** "RevM": identifies the file as a memory of Reeve, in the header of the SQLite file. */
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

/** Statements that migrate the tables from each version to the next. A released migration never changes. */
const migrations: readonly string[] = [
  // Adds stemming, by which "running" finds "runs". The indexes are built again from the stored texts.
  `
  DROP TABLE episode_words;
  DROP TABLE fact_words;
  CREATE VIRTUAL TABLE episode_words USING fts5(scope, text, tokenize = "porter unicode61 remove_diacritics 2");
  CREATE VIRTUAL TABLE fact_words USING fts5(scope, text, tokenize = "porter unicode61 remove_diacritics 2");
  INSERT INTO episode_words (episode_words, rank) VALUES ('secure-delete', 1);
  INSERT INTO fact_words (fact_words, rank) VALUES ('secure-delete', 1);
  INSERT INTO episode_words (rowid, scope, text) SELECT row, 'scope' || scope, text FROM episodes;
  INSERT INTO fact_words (rowid, scope, text)
    SELECT row, 'scope' || scope, subject || ' ' || predicate || ' ' || object FROM facts;
  `,
];

/** Tables of a memory file and their migrations. */
export const memorySchema = { applicationId, tables, migrations } as const;
