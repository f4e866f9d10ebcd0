/* Talks one after the other in one process, with one adapter: those that need none of their own. */
for (const talk of process.argv.slice(3)) await import(`./${talk}.test.js`);
