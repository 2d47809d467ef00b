// A Hikawa sings Zun and Doko until four Zun and a Doko come in a row, then Kiyoshi! SEED repeats a song.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const API = 'zundokokiyoshi.kaitoy.github.com/v1beta1';
const { parent, children: observed } = JSON.parse(readFileSync(0));
const { name, namespace, uid } = parent.metadata;
const said = observed['Zundoko.' + API];
const kiyoshied = Object.keys(observed['Kiyoshi.' + API]).length > 0;
const child = (kind, name, spec) => ({ apiVersion: API, kind, metadata: { name }, spec });
const wordName = (n) => `${name}-zundoko-${String(n).padStart(3, '0')}`;

function word(n) {
  const seed = process.env.SEED ?? '0';
  const singer = seed === '0' ? uid : `${namespace}/${name}`;
  return ['Zun', 'Doko'][createHash('sha256').update(`${seed} ${singer} ${n}`).digest()[0] & 1];
}

let words = '';
while (said[wordName(words.length + 1)]) words += said[wordName(words.length + 1)].spec.say[0];
const sung = /(^|D)ZZZZD/.test(words) && words.length >= (parent.spec.numZundokos ?? 0);
const last = Math.max(...Object.values(said).map((z) => Date.parse(z.spec.saidAt)));
const pause = parent.spec.intervalMillis - (Date.now() - last); // of the first word, minus infinity
const children = Object.entries(said).map(([key, z]) => child('Zundoko', key, z.spec));
const answer = { status: { numZundokosSaid: children.length, kiyoshied }, children };
if (words.length === children.length && pause > 0 && !kiyoshied) {
  answer.resyncAfterSeconds = pause / 1000; // a word that is missing in the middle is said at once
} else if (!sung) {
  const saidAt = new Date().toISOString().replace('Z', '000Z');
  children.push(child('Zundoko', wordName(words.length + 1), { say: word(words.length + 1), saidAt }));
}
if (sung && (kiyoshied || !(pause > 0))) children.push(child('Kiyoshi', name + '-kiyoshi', { say: 'Kiyoshi!' }));
console.log(JSON.stringify(answer));
