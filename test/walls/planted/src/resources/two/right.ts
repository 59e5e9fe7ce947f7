import './planted.ts';
