import '#faces/two/planted';
import '../two/planted.ts';
