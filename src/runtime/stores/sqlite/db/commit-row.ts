export const intoCommits = "INSERT INTO commits (run, number, at, next_event, link, body, refs)";
export const insertCommit = `${intoCommits} VALUES (?, ?, ?, ?, ?, ?, ?)`;
